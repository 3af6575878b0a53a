import { expect, test } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { document } from '../../../../test/fixtures/given-objects.ts';
import type { Listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import { buildClusters } from '../../clusters/build.ts';
import { buildListeners } from '../build.ts';

const door: GivenNode = { type: 'router', namespace: 'shop', labels: { app: 'door' } };

function listenersOf(yaml: string, node: GivenNode = door): Listener[] {
  const { context } = givenMesh(yaml);
  return buildListeners(givenShape(node, context), context).map(({ message }) => message as Listener);
}

const gateway = (server: string): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: door, namespace: shop }
spec: { selector: { app: door }, servers: [{ ${server} }] }
---`;

const service = (name: string, host: string, resolution: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: ${name}, namespace: shop }
spec:
  hosts: ["${host}"]
  location: MESH_INTERNAL
  resolution: ${resolution}
  ports: [{ number: 80, name: http, protocol: HTTP }]
---`;

test('AUTO_PASSTHROUGH matches service names, but not wildcards', () => {
  const [listener] = listenersOf(
    gateway('port: { number: 15443, name: tls, protocol: TLS }, hosts: ["*.test"], tls: { mode: AUTO_PASSTHROUGH }') +
      service('web', 'web.test', 'STATIC') +
      service('all', '*.all.test', 'NONE'),
  );
  expect(listener!.filterChains.map(({ filterChainMatch }) => filterChainMatch!.serverNames)).toEqual([
    ['outbound_.80_._.web.test'],
  ]);
});

test('AUTO_PASSTHROUGH has a chain for each cluster except those of DNS services', () => {
  const rule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: shop }
spec:
  host: web.test
  subsets:
    - { name: near, labels: { v: near } }
    - { name: through, labels: { v: x }, trafficPolicy: { loadBalancer: { simple: PASSTHROUGH } } }
---`;
  const yaml =
    gateway('port: { number: 15443, name: tls, protocol: TLS }, hosts: ["*.test"], tls: { mode: AUTO_PASSTHROUGH }') +
    service('web', 'web.test', 'STATIC') +
    rule +
    service('resolved', 'resolved.test', 'DNS');
  const { context } = givenMesh(yaml);
  const clusters = buildClusters(givenShape(door, context), context).map(({ name }) => name);
  const [listener] = listenersOf(yaml);
  const names = listener!.filterChains.flatMap(({ filterChainMatch }) => filterChainMatch!.serverNames);
  expect(names).toEqual(['outbound_.80_._.web.test', 'outbound_.80_.near_.web.test']);
  expect(clusters).toEqual(expect.arrayContaining(names));
});

test('a Passthrough listener of a Gateway for a network forwards connections to the service in the SNI', () => {
  const listener = '{name: cross, port: 15443, protocol: TLS, tls: {mode: Passthrough}}';
  const front = document('Gateway', 'front', `{gatewayClassName: istio, listeners: [${listener}]}`);
  const node = { ...door, labels: { 'gateway.networking.k8s.io/gateway-name': 'front' } };
  const names = (labels: string): readonly string[] => {
    const yaml =
      front.replace('namespace: shop}', `namespace: shop, labels: ${labels}}`) +
      `---\n${service('web', 'web.test', 'STATIC')}`;
    return listenersOf(yaml, node).flatMap(({ filterChains }) =>
      filterChains.flatMap(({ filterChainMatch }) => filterChainMatch!.serverNames),
    );
  };
  expect(names('{topology.istio.io/network: west}')).toEqual(['outbound_.80_._.web.test']);
  expect(names('{}')).toEqual([]);
});

test('AUTO_PASSTHROUGH applies no policies, because the backend authenticates the client', () => {
  const policy = `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: allow-nothing, namespace: istio-system }
spec: {}
---`;
  const filters = (mode: string): string[] => {
    const server = `port: { number: 15443, name: tls, protocol: TLS }, hosts: ["*.test"], tls: { mode: ${mode} }`;
    const route = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  gateways: [door]
  tls: [{ match: [{ sniHosts: [web.test] }], route: [{ destination: { host: web.test } }] }]
---`;
    const [listener] = listenersOf(policy + gateway(server) + service('web', 'web.test', 'STATIC') + route);
    return listener!.filterChains[0]!.filters.map(({ name }) => name);
  };
  const tcp = 'envoy.filters.network.tcp_proxy';
  expect(filters('AUTO_PASSTHROUGH')).toEqual([tcp]);
  expect(filters('PASSTHROUGH')).toEqual(['envoy.filters.network.rbac', tcp]);
});

test('a dual-stack gateway listens on both address families unless a server has a bind address', () => {
  const addresses = (server: string): unknown =>
    listenersOf(gateway(server), { ...door, metadata: { INSTANCE_IPS: '10.0.0.9,fd00::9' } }).map((one) =>
      [one.address, ...one.additionalAddresses.map(({ address }) => address)].map((address) =>
        address?.address.case === 'socketAddress' ? address.address.value.address : undefined,
      ),
    );
  const http = 'port: { number: 8080, name: http, protocol: HTTP }, hosts: ["*"]';
  expect(addresses(http)).toEqual([['0.0.0.0', '::']]);
  expect(addresses(`${http}, bind: 0.0.0.0`)).toEqual([['0.0.0.0']]);
});

test('a server that cannot verify client certificates closes its connections, so that no other server receives them', () => {
  const [listener] = listenersOf(
    gateway(
      [
        'port: { number: 443, name: mesh, protocol: HTTPS }, hosts: [mesh.test], tls: { mode: ISTIO_MUTUAL } }',
        '{ port: { number: 443, name: all, protocol: HTTPS }, hosts: ["*"], tls: { mode: SIMPLE, credentialName: all }',
      ].join(', '),
    ),
  );
  const rejectedChains = listener!.filterChains.map(({ filterChainMatch, filters, transportSocket }) => [
    filterChainMatch?.serverNames ?? [],
    filters.length > 0,
    transportSocket !== undefined,
  ]);
  expect(rejectedChains).toEqual([
    [['mesh.test'], false, false],
    [[], true, true],
  ]);
});

test('a tcp route behind terminated TLS matches only connections that satisfy its conditions', () => {
  const [listener] = listenersOf(`${gateway(
    'port: { number: 9443, name: db, protocol: TLS }, hosts: [db.test], tls: { mode: SIMPLE, credentialName: db }',
  )}
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: db, namespace: shop }
spec:
  hosts: [db.test]
  gateways: [door]
  tcp:
    - { match: [{ sourceSubnet: 10.7.0.0/16 }], route: [{ destination: { host: inner.test } }] }
    - { route: [{ destination: { host: outer.test } }] }
`);
  const chains = listener!.filterChains.map(({ filterChainMatch, filters: [filter] }) => [
    filterChainMatch?.serverNames,
    filterChainMatch?.sourcePrefixRanges.map(({ addressPrefix }) => addressPrefix),
    /(inner|outer)\.test/.exec(Buffer.from((filter!.configType.value as { value: Uint8Array }).value).toString())?.[0],
  ]);
  expect(chains).toEqual([
    [['db.test'], ['10.7.0.0'], 'inner.test'],
    [['db.test'], [], 'outer.test'],
  ]);
});
