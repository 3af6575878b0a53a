/** Tests that the cost per host of a gateway does not grow with the number of hosts. Counts calls instead of measuring time. */
import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, growthOfWork } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import { readConfigFile } from '../../model/config/config-file.ts';
import { clusterType, listenerType, routeType, secretType } from '../index.ts';

const [smallCount, largeCount] = [100, 400];
/** Maximum growth exponent of the number of calls. */
const maxExponent = 1.2;

const times = <T>(size: number, build: (index: number) => T): T[] =>
  Array.from({ length: size }, (_, index) => build(index));
const host = (index: number): string => `h${index}.example.com`;

function service(index: number): Config {
  return givenObject('ServiceEntry', 'edge', `s${index}`, {
    hosts: [`s${index}.edge.svc.cluster.local`],
    ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: `10.1.${index >> 8}.${index & 255}` }],
  });
}

const destination = (index: number): object => ({ host: `s${index}.edge.svc.cluster.local`, port: { number: 8080 } });

function virtualService(
  index: number,
  gateways: readonly string[],
  extraFields: object = {},
  hosts = [host(index)],
  to = 0,
): Config {
  const http = [{ route: [{ destination: destination(to) }] }];
  return givenObject('VirtualService', 'edge', `v${index}`, { hosts, gateways, http, ...extraFields }, index);
}

function gateway(name: string, servers: readonly object[], age = 0): Config {
  return givenObject('Gateway', 'edge', name, { selector: {}, servers }, age);
}

function httpsServer(index: number, extraFields: object = {}): object {
  const tls = { mode: 'SIMPLE', credentialName: `cert-${index}` };
  return {
    port: { number: 443, name: `https-${index}`, protocol: 'HTTPS' },
    hosts: [host(index)],
    tls,
    ...extraFields,
  };
}

function envoyFilters(name: string, configPatches: readonly object[]): Config {
  return givenObject('EnvoyFilter', 'edge', name, { workloadSelector: {}, configPatches });
}

function envoyFilter(name: string, applyTo: string, match: object, patch: object): Config {
  return envoyFilters(name, [{ applyTo, match: { context: 'GATEWAY', ...match }, ...patch }]);
}

const patchedRoutes = envoyFilter('routes', 'HTTP_ROUTE', {}, { operation: 'MERGE', value: { name: 'patched' } });
const patchedHosts = envoyFilter(
  'hosts',
  'VIRTUAL_HOST',
  {},
  {
    operation: 'MERGE',
    value: { include_request_attempt_count: true },
  },
);

/** Resources that a gateway requests in addition to listeners. */
interface Requested {
  readonly objects: readonly Config[];
  readonly routes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly labels?: object;
  /** Change that is applied after the first build. */
  readonly change?: Config;
}

/** Builds all requested resources before and after the change. */
function serve({ objects, routes = [], secrets = [], labels = {}, change }: Requested): void {
  const world = new GivenWorld(objects);
  const node = world.connect('10.9.0.1', { namespace: 'edge', type: 'router', secrets: true, labels });
  const watched = [clusterType, listenerType, routeType, secretType];
  const countResources = (types: readonly string[]): number => {
    const names = (type: string) => (type === routeType ? routes : type === secretType ? secrets : '*');
    return types.reduce((sum, type) => sum + node.get(type, names(type))!.resources.size, 0);
  };
  expect(countResources(watched)).toBeGreaterThan(0);
  if (change !== undefined) countResources(node.typesToPush(world.put(change), watched));
}

const httpsRoutes = (size: number, gatewayOf: (index: number) => string = () => 'g'): string[] =>
  times(size, (i) => `https.443.https-${i}.${gatewayOf(i)}.edge`);
const secretNames = (size: number): string[] => times(size, (i) => `kubernetes://cert-${i}`);
const services = (size: number): Config[] => times(size, service);

const filter = {
  name: 'x',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors' },
};
const addedFilter = envoyFilter(
  'filter',
  'HTTP_FILTER',
  { listener: { filterChain: { filter: { name: 'envoy.filters.network.http_connection_manager' } } } },
  { operation: 'INSERT_FIRST', value: filter },
);

const meshes: Readonly<Record<string, (size: number) => Requested>> = {
  'HTTPS servers of one Gateway, with EnvoyFilters for their routes and chains': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => httpsServer(i)),
      ),
      ...times(size, (i) => virtualService(i, ['edge/g'], {}, [host(i)], i)),
      ...services(size),
      ...[patchedRoutes, patchedHosts, addedFilter],
    ],
    routes: httpsRoutes(size),
    secrets: secretNames(size),
    change: virtualService(1, ['edge/g'], { http: [{ timeoutMs: 1000, route: [{ destination: destination(1) }] }] }),
  }),
  'HTTPS servers of separate Gateways': (size) => ({
    objects: [
      ...times(size, (i) => gateway(`g${i}`, [httpsServer(i)], i)),
      ...times(size, (i) => virtualService(i, [`edge/g${i}`])),
      service(0),
      patchedRoutes,
    ],
    routes: httpsRoutes(size, (i) => `g${i}`),
    change: gateway('g1', [httpsServer(1, { hosts: ['other.example.com'] })], 1),
  }),
  'HTTPS servers that each repeat a host of an older one': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => httpsServer(i, { hosts: [host(i), host(Math.max(0, i - 1))] })),
      ),
      ...times(size, (i) => virtualService(i, ['edge/g'])),
      service(0),
    ],
    routes: httpsRoutes(size),
  }),
  'HTTPS servers with wildcard hosts': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => httpsServer(i, { hosts: [`edge/*.d${i}.com`] })),
      ),
      ...times(size, (i) => virtualService(i, ['edge/g'], {}, [`a.b.d${i}.com`, `*.c.d${i}.com`])),
      service(0),
    ],
    routes: httpsRoutes(size),
  }),
  'HTTPS servers within VirtualServices for wildcards': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => httpsServer(i, { hosts: [`a.d${i}.com`] })),
      ),
      ...times(size, (i) => virtualService(i, ['edge/g'], {}, [`*.d${i}.com`, `*.e${i}.com`, `*f${i}.com`])),
      service(0),
    ],
    routes: httpsRoutes(size),
  }),
  'HTTP servers with redirects, and hosts that an EnvoyFilter renames': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => ({
          port: { number: 80, name: `http-${i}`, protocol: 'HTTP' },
          hosts: [host(i)],
          ...(i % 2 === 0 && { tls: { mode: 'PASSTHROUGH', httpsRedirect: true } }),
        })),
      ),
      ...times(size, (i) => virtualService(i, ['edge/g'])),
      service(0),
      patchedHosts,
      envoyFilters(
        'renamed',
        times(size, (i) => ({
          applyTo: 'VIRTUAL_HOST',
          match: { context: 'GATEWAY', routeConfiguration: { vhost: { name: `${host(i)}:80` } } },
          operation: 'MERGE',
          value: { domains: [`${host(i)}.alias`] },
        })),
      ),
    ],
    routes: ['http.80'],
  }),
  'one HTTP server for all hosts, with patched and added virtual hosts': (size) => ({
    objects: [
      gateway('g', [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }]),
      ...times(size, (i) => virtualService(i, ['edge/g'])),
      service(0),
      envoyFilter('domains', 'VIRTUAL_HOST', {}, { operation: 'MERGE', value: { domains: ['one.for.all'] } }),
      envoyFilters(
        'additions',
        times(size, (i) => ({
          applyTo: 'VIRTUAL_HOST',
          match: { context: 'GATEWAY' },
          operation: 'ADD',
          value: { name: `added-${i}`, domains: [`added-${i}.com`] },
        })),
      ),
    ],
    routes: ['http.80'],
  }),
  'HTTP servers for any host': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => ({ port: { number: 80, name: `http-${i}`, protocol: 'HTTP' }, hosts: ['*'] })),
      ),
      ...times(size, (i) => virtualService(i, ['edge/g'])),
      service(0),
    ],
    routes: ['http.80'],
  }),
  'HTTP servers of two Gateways that matches distinguish': (size) => ({
    objects: [
      ...['g', 'other'].map((name) =>
        gateway(
          name,
          times(size, (i) => ({ port: { number: 80, name: `http-${i}`, protocol: 'HTTP' }, hosts: ['*', host(i)] })),
        ),
      ),
      ...times(size, (i) => {
        const to = [{ destination: destination(0) }];
        const match = ['edge/g', 'edge/other'].map((name) => ({ gateways: [name], port: 80 }));
        return virtualService(i, ['edge/g', 'edge/other'], { http: [{ match, route: to }] });
      }),
      service(0),
    ],
    routes: ['http.80'],
  }),
  'TLS passthrough servers with SNI routes': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => ({
          port: { number: 443, name: `tls-${i}`, protocol: 'TLS' },
          hosts: [host(i)],
          tls: { mode: 'PASSTHROUGH' },
        })),
      ),
      ...times(size, (i) => {
        const tls = [{ match: [{ sniHosts: [host(i)] }], route: [{ destination: destination(0) }] }];
        return virtualService(i, ['edge/g'], { http: undefined, tls });
      }),
      service(0),
      addedFilter,
    ],
  }),
  'TCP servers on separate ports': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => ({ port: { number: 2000 + i, name: `tcp-${i}`, protocol: 'TCP' }, hosts: [host(i)] })),
      ),
      ...times(size, (i) => {
        const tcp = [{ match: [{ port: 2000 + i }], route: [{ destination: destination(0) }] }];
        return virtualService(i, ['edge/g'], { http: undefined, tcp });
      }),
      service(0),
    ],
  }),
  'AUTO_PASSTHROUGH servers': (size) => ({
    objects: [
      gateway(
        'g',
        times(size, (i) => ({
          port: { number: 15443, name: `tls-${i}`, protocol: 'TLS' },
          hosts: [`s${i}.edge.svc.cluster.local`],
          tls: { mode: 'AUTO_PASSTHROUGH' },
        })),
      ),
      service(0),
    ],
  }),
  'Gateway API listeners and HTTPRoutes': (size) => ({
    objects: [
      givenObject('KubernetesGateway', 'edge', 'api', {
        gatewayClassName: 'istio',
        addresses: [],
        listeners: times(size, (i) => ({
          name: `l${i}`,
          port: 443,
          protocol: 'HTTPS',
          hostname: host(i),
          tls: { certificateRefs: [{ group: '', kind: 'Secret', name: `cert-${i}` }], options: {} },
          allowedRoutes: { namespaces: { from: 'Same' } },
        })),
      }),
      ...times(size, (i) =>
        givenObject('HTTPRoute', 'edge', `r${i}`, {
          parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'api' }],
          hostnames: [host(i)],
          rules: [
            {
              matches: [{ path: { type: 'PathPrefix', value: '/' }, headers: [], queryParams: [] }],
              filters: [],
              backendRefs: [{ group: '', kind: 'Service', name: `s${i}`, port: 8080, weight: 1, filters: [] }],
            },
          ],
        }),
      ),
      ...times(size, (i) =>
        givenObject('Service', 'edge', `s${i}`, {
          spec: {
            type: 'ClusterIP',
            clusterIPs: [`10.2.${i >> 8}.${i & 255}`],
            externalIPs: [],
            ports: [{ port: 8080, name: 'http', protocol: 'TCP' }],
          },
          status: { loadBalancer: { ingress: [] } },
        }),
      ),
    ],
    labels: { 'gateway.networking.k8s.io/gateway-name': 'api' },
    routes: times(size, (i) => `https.443.default.api-istio-autogenerated-k8s-gateway-l${i}.edge`),
  }),
};

describe('the cost of a gateway', () => {
  it.each(Object.entries(meshes))('the cost grows linearly for %s', (_, meshOf) => {
    const work = (size: number) => {
      const requested = meshOf(size);
      return countedWork(() => serve(requested));
    };
    const { exponent, tooFast } = growthOfWork(work, smallCount, largeCount);
    expect(tooFast).toEqual([]);
    expect(exponent).toBeLessThan(maxExponent);
  });

  it('certificate files are read once', () => {
    const work = (size: number) => {
      const object = (kind: string, name: string, spec: object): string =>
        JSON.stringify({ apiVersion: 'networking.istio.io/v1', kind, metadata: { name, namespace: 'edge' }, spec });
      const text = [
        object('Gateway', 'g', { selector: {}, servers: times(size, (i) => httpsServer(i)) }),
        ...times(size, (i) => {
          const http = [{ route: [{ destination: destination(i) }] }];
          return object('VirtualService', `v${i}`, { hosts: [host(i)], gateways: ['edge/g'], http });
        }),
      ].join('\n---\n');
      return countedWork(() => {
        const { configs, problems } = readConfigFile('edge.yaml', text, { creationTimestamp: 0 });
        expect([configs.length, problems.length]).toEqual([size + 1, 0]);
      });
    };
    const { exponent, tooFast } = growthOfWork(work, smallCount, largeCount);
    expect(tooFast).toEqual([]);
    expect(exponent).toBeLessThan(maxExponent);
  });
});
