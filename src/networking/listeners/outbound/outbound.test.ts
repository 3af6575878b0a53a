import { toJson } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { type Listener, ListenerSchema } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { Features } from '../../../model/mesh/features.ts';
import { extensionTypes } from '../../messages/extension-types.ts';
import { buildListeners } from '../build.ts';

interface About {
  readonly node?: GivenNode;
  readonly features?: Partial<Features>;
  readonly meshConfig?: string;
}

function listeners(yaml: string, { node, features = {}, meshConfig = '' }: About = {}): Listener[] {
  const { context } = givenMesh(yaml, { features, meshConfig });
  const all = buildListeners(givenShape({ namespace: 'shop', ...node }, context), context);
  return all.map(({ message }) => message as Listener).filter(({ name }) => !name.startsWith('virtual'));
}

function names(yaml: string, options: About = {}): string[] {
  return listeners(yaml, options)
    .map(({ name }) => name)
    .sort();
}

function filters(yaml: string, options: About = {}): string[] {
  return listeners(yaml, options).flatMap(({ filterChains, defaultFilterChain }) =>
    [...filterChains, ...(defaultFilterChain ? [defaultFilterChain] : [])].flatMap((chain) =>
      chain.filters.map(({ name }) => name.replace('envoy.filters.network.', '')),
    ),
  );
}

function serviceEntry(ports: string, spec = 'resolution: STATIC, addresses: [10.5.0.1]'): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: given, namespace: shop }
spec: { hosts: [given.test], location: MESH_INTERNAL, ports: [${ports}], ${spec} }
---`;
}

const kubernetesService = (spec: string): string => `
apiVersion: v1
kind: Service
metadata: { name: db, namespace: shop }
spec: { ${spec}, ports: [{ name: tcp, port: 5432 }] }
---`;

const pod = (name: string, ip: string): string => `
apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: shop, labels: { app: db } }
spec: {}
status: { podIP: ${ip}, phase: Running }
---`;

const slice = (addresses: readonly string[], extraFields = ''): string => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: db-1, namespace: shop, labels: { kubernetes.io/service-name: db } }
addressType: IPv4
ports: [{ name: tcp, port: 5432 }]
endpoints: [${addresses.map((address) => `{ addresses: [${address}]${extraFields} }`).join(', ')}]
---`;

const dualStackNode = { metadata: { INSTANCE_IPS: '10.0.0.9,fd00::9' } };

describe('outbound listen addresses of a sidecar', () => {
  it('a sidecar listens on all virtual addresses of its address families', () => {
    const service = kubernetesService('clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1, "fd00::1"]');
    expect(names(service)).toEqual(['10.96.0.1_5432']);
    expect(names(service, { node: dualStackNode })).toEqual(['10.96.0.1_5432', 'fd00::1_5432']);
  });

  it('a dual-stack sidecar listens on the wildcards of both families', () => {
    const web = serviceEntry('{ number: 80, name: http, protocol: HTTP }');
    const additionalAddressesOf = (options: About): unknown =>
      listeners(web, options).map(({ additionalAddresses }) => additionalAddresses.map((one) => one.address));
    expect(additionalAddressesOf({})).toEqual([[]]);
    expect(additionalAddressesOf({ node: dualStackNode })).toMatchObject([
      [{ address: { case: 'socketAddress', value: { address: '::' } } }],
    ]);
  });

  it("a sidecar listens on an allocated address if the agent's DNS returns it", () => {
    const tls = serviceEntry('{ number: 443, name: tls, protocol: TLS }', 'resolution: DNS');
    const dnsCapture = { metadata: { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' } };
    expect(names(tls)).toEqual(['0.0.0.0_443']);
    expect(names(tls, { node: dnsCapture, features: { autoAllocate: false } })).toEqual([
      expect.stringMatching(/^240\.240\.\d+\.\d+_443$/),
    ]);
  });

  it('a sidecar listens on each pod of a headless service except its own', () => {
    const yaml =
      kubernetesService('clusterIP: None, selector: { app: db }') +
      pod('db-0', '10.0.0.9') +
      pod('db-1', '10.0.0.10') +
      slice(['10.0.0.9', '10.0.0.10']);
    expect(names(yaml, { node: { ip: '10.0.0.9' } })).toEqual(['10.0.0.10_5432']);
    expect(names(yaml)).toEqual(['10.0.0.10_5432', '10.0.0.9_5432']);
    const westNode = { metadata: { CLUSTER_ID: 'west' } };
    expect(names(yaml, { node: westNode })).toEqual(['10.0.0.10_5432', '10.0.0.9_5432']);
    expect(names(yaml, { node: westNode, features: { multiclusterHeadless: false } })).toEqual([]);
  });

  it('a sidecar does not listen on pods that are not ready or are in another network', () => {
    const service = kubernetesService('clusterIP: None');
    const unready = slice(['10.0.0.10'], ', conditions: { ready: false }');
    expect(names(service + slice(['10.0.0.10']))).toEqual(['10.0.0.10_5432']);
    expect(names(service + unready)).toEqual([]);
    const labelled = kubernetesService('clusterIP: None, selector: { app: db }');
    const remotePod = pod('db-1', '10.0.0.10').replace('app: db', 'app: db, topology.istio.io/network: far');
    const yaml = labelled + remotePod + slice(['10.0.0.10']);
    expect(names(yaml, { node: { metadata: { NETWORK: 'far' } } })).toEqual(['10.0.0.10_5432']);
    expect(names(yaml, { node: { metadata: { NETWORK: 'near' } } })).toEqual([]);
  });
});

describe('port of unknown protocol', () => {
  it('the port accepts HTTP and TCP', () => {
    const [listener] = listeners(serviceEntry('{ number: 7000, name: any }', 'resolution: STATIC'));
    expect(listener?.filterChains.map(({ filters }) => filters[0]?.name)).toEqual([
      'envoy.filters.network.http_connection_manager',
    ]);
    expect(listener?.defaultFilterChain?.filters[0]?.name).toBe('envoy.filters.network.tcp_proxy');
  });

  it('the port accepts only TCP if servers can send first', () => {
    expect(filters(serviceEntry('{ number: 3306, name: any }'))).toEqual(['tcp_proxy']);
  });
});

describe('protocol filters', () => {
  const protocol = (name: string): string => serviceEntry(`{ number: 7000, name: p, protocol: ${name} }`);

  it('the Mongo filter counts operations unless it is disabled', () => {
    expect(filters(protocol('MONGO'))).toEqual(['mongo_proxy', 'tcp_proxy']);
    expect(filters(protocol('MONGO'), { features: { mongoFilter: false } })).toEqual(['tcp_proxy']);
  });

  it('the Redis filter replaces the TCP proxy if it is enabled', () => {
    expect(filters(protocol('REDIS'))).toEqual(['tcp_proxy']);
    expect(filters(protocol('REDIS'), { features: { redisFilter: true } })).toEqual(['redis_proxy']);
  });

  it('the MySQL filter counts commands if it is enabled and included in the Envoy build', () => {
    expect(filters(protocol('MYSQL'))).toEqual(['tcp_proxy']);
    expect(filters(protocol('MYSQL'), { features: { mysqlFilter: true } })).toEqual(['mysql_proxy', 'tcp_proxy']);
  });
});

describe('HTTP/1.0 of outbound listeners', () => {
  const web = serviceEntry('{ number: 80, name: http, protocol: HTTP }');
  const settings = (options: About): string =>
    listeners(web, options)
      .map((listener) => JSON.stringify(toJson(ListenerSchema, listener, { registry: extensionTypes })))
      .join();

  it.each<[string, About]>([
    ['the proxy', { node: { metadata: { HTTP10: '1' } } }],
    ['the environment', { features: { http10: true } }],
  ])('HTTP/1.0 is accepted if %s enables it', (_, options) => {
    expect(settings(options)).toContain('"acceptHttp10":true');
    expect(settings({})).not.toContain('acceptHttp10');
  });
});

describe('hosts resolved on demand', () => {
  const wild = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: wild, namespace: shop }
spec:
  hosts: ["*.example.com"]
  resolution: DYNAMIC_DNS
  ports: [{ number: 443, name: tls, protocol: TLS }]
---`;
  const web = serviceEntry('{ number: 80, name: http, protocol: HTTP }');
  const httpFilters = (yaml: string, options: About = {}): boolean =>
    listeners(yaml, options).some((listener) =>
      JSON.stringify(toJson(ListenerSchema, listener, { registry: extensionTypes })).includes(
        'envoy.filters.http.dynamic_forward_proxy',
      ),
    );

  it('hosts of TLS connections are resolved by SNI before forwarding', () => {
    expect(filters(wild)).toContain('sni_dynamic_forward_proxy');
    expect(filters(web)).not.toContain('sni_dynamic_forward_proxy');
  });

  it('hosts are resolved by the Host header on listeners that can receive requests for them', () => {
    expect(httpFilters(web)).toBe(false);
    expect(httpFilters(web + wild)).toBe(true);
    expect(httpFilters(web, { meshConfig: 'outboundTrafficPolicy: { mode: ALLOW_ANY_DYNAMIC_DNS }' })).toBe(true);
  });

  it('a listener restores the original destination before it inspects connections by port', () => {
    for (const mode of ['ALLOW_ANY', 'REGISTRY_ONLY', 'ALLOW_ANY_DYNAMIC_DNS']) {
      for (const listener of listeners(web, { meshConfig: `outboundTrafficPolicy: { mode: ${mode} }` })) {
        if (listener.bindToPort === false || !listener.listenerFilters.some((one) => one.filterDisabled)) continue;
        expect(listener.listenerFilters[0]?.name, listener.name).toBe('envoy.filters.listener.original_dst');
      }
    }
  });
});

it("a TLS service's names are distinguished by SNI if an object refers to one of them", () => {
  const serviceNamed = (name: string, spec: string): string => `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { ${spec} }
---`;
  const rule = (kind: string, name: string, spec: string): string => `
apiVersion: networking.istio.io/v1
kind: ${kind}
metadata: { name: ${name}, namespace: shop }
spec: { ${spec} }
---`;
  const host = (name: string): string => `${name}.shop.svc.cluster.local`;
  const yaml =
    serviceNamed('web', 'clusterIP: None, ports: [{ name: https, port: 443 }]') +
    serviceNamed('plain', `type: ExternalName, externalName: ${host('web')}`) +
    serviceNamed('routed', `type: ExternalName, externalName: ${host('web')}`) +
    serviceNamed('ruled', `type: ExternalName, externalName: ${host('web')}`) +
    rule(
      'VirtualService',
      'routed',
      `hosts: [${host('routed')}], tls: [{ match: [{ sniHosts: [${host('routed')}] }], route: [{ destination: { host: to.test } }] }]`,
    ) +
    rule('DestinationRule', 'ruled', 'host: ruled, trafficPolicy: { loadBalancer: { simple: RANDOM } }');
  const [listener] = listeners(yaml, { node: { metadata: { INTERCEPTION_MODE: 'NONE' } } });
  const chains = listener!.filterChains.map(({ filterChainMatch, filters: [filter] }) => {
    return [
      filterChainMatch?.serverNames,
      Buffer.from((filter!.configType.value as { value: Uint8Array }).value).toString(),
    ];
  });
  const to = (cluster: string) => expect.stringContaining(cluster);
  expect(chains).toEqual([
    [[host('routed')], to('outbound|443||to.test')],
    [[host('ruled')], to(`outbound|443||${host('ruled')}`)],
    [[host('plain'), host('web')], to(`outbound|443||${host('web')}`)],
  ]);
});

describe('TLS port with several services', () => {
  const external = (name: string, host: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: ${name}, namespace: shop }
spec: { hosts: ["${host}"], location: MESH_EXTERNAL, resolution: ${host.startsWith('*') ? 'NONE' : 'DNS'}, ports: [{ number: 443, name: tls, protocol: TLS }] }
---`;
  const routed = (host: string, spec: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: routed, namespace: shop }
spec: { hosts: [${host}], ${spec} }
---`;
  const route = 'route: [{ destination: { host: to.test, port: { number: 443 } } }]';
  const tcpRoute = `
apiVersion: v1
kind: Service
metadata: { name: db, namespace: shop }
spec: { clusterIP: 10.5.0.9, ports: [{ name: tls, port: 443 }] }
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TCPRoute
metadata: { name: db, namespace: shop }
spec: { parentRefs: [{ group: "", kind: Service, name: db, port: 443 }], rules: [{ backendRefs: [{ group: networking.istio.io, kind: Hostname, name: to.test, port: 443 }] }] }
---`;

  /** Returns the cluster of each chain, including the default chain, by the chain's server names. */
  function chains(yaml: string, options: About = {}): Record<string, string> {
    const [listener] = listeners(yaml, options);
    const all = [...listener!.filterChains, listener!.defaultFilterChain].filter((chain) => chain !== undefined);
    return Object.fromEntries(
      all.map(({ filterChainMatch, filters: [filter] }) => [
        filterChainMatch?.serverNames.join() ?? '',
        Buffer.from((filter!.configType.value as { value: Uint8Array }).value)
          .toString()
          .replace(/^.*?(outbound\|[\w|.*-]+|PassthroughCluster|BlackHoleCluster).*$/s, '$1')
          .replace(/test.*$/, 'test'),
      ]),
    );
  }

  it('tcp routes do not apply to a shared TLS port, because they would match connections to other services', () => {
    const yaml = external('db', 'db.test') + external('to', 'to.test') + routed('db.test', `tcp: [{ ${route} }]`);
    expect(chains(yaml, { meshConfig: 'outboundTrafficPolicy: { mode: REGISTRY_ONLY }' })).toEqual({
      'db.test': 'outbound|443||db.test',
      'to.test': 'outbound|443||to.test',
      '': 'BlackHoleCluster',
    });
  });

  it('a TCPRoute applies only to connections to its service', () => {
    const node = { metadata: { INTERCEPTION_MODE: 'NONE' } };
    expect(chains(tcpRoute + external('to', 'to.test'), { node })).toEqual({
      'db.shop.svc.cluster.local': 'outbound|443||to.test',
      'to.test': 'outbound|443||to.test',
    });
    expect(chains(tcpRoute)).toEqual({ '': 'outbound|443||to.test' });
  });

  it("tls routes apply to names that the service's names cover", () => {
    const tls = `tls: [{ match: [{ sniHosts: [a.wide.test] }], ${route} }]`;
    const yaml = external('wide', '*.wide.test') + external('to', 'to.test') + routed('a.wide.test', tls);
    expect(chains(yaml)).toEqual({
      'a.wide.test': 'outbound|443||to.test',
      '*.wide.test': 'outbound|443||*.wide.test',
      'to.test': 'outbound|443||to.test',
      '': 'PassthroughCluster',
    });
  });
});

it('a connection has no route if it is in the range of a route but does not match the other conditions of that route', () => {
  const route = 'route: [{ destination: { host: to.test } }]';
  const yaml = `${serviceEntry('{ number: 5432, name: tcp, protocol: TCP }')}
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: ranged, namespace: shop }
spec: { hosts: [given.test], tcp: [{ match: [{ destinationSubnets: [10.0.0.0/8], sourceSubnet: 10.7.0.0/16 }], ${route} }] }
`;
  const [listener] = listeners(yaml);
  expect(listener!.filterChains.map(({ filterChainMatch }) => filterChainMatch?.prefixRanges.length)).toEqual([1]);
  expect(listener!.defaultFilterChain?.filters).toHaveLength(1);
  // A single chain needs no default chain.
  const [plain] = listeners(serviceEntry('{ number: 5432, name: tcp, protocol: TCP }'));
  expect(plain!.filterChains).toHaveLength(1);
  expect(plain!.defaultFilterChain).toBeUndefined();
});
