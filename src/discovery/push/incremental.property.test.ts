import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Config, configKeyOf, configKeyText } from '../../model/config.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../networking/index.ts';
import { GivenWorld, givenObject } from './given-world.ts';
import type { MeshNode } from './mesh-resources.ts';

const watched = [clusterType, endpointType, listenerType, routeType];
const namespaces = ['a', 'b', 'istio-system'];
/** Where there is no Kubernetes, the short name `s` means one of the last two, as they come and go. */
const hosts = ['x.test', 'y.test', 'z.test', 'w.x.test', '*.x.test', 'db.test', 's.a', 's.a.svc.cluster.local'];
const subsets = ['', 'v1'];
const ports = [80, 443, 9000];

const anyNamespace = fc.constantFrom(...namespaces);
const anyHost = fc.constantFrom(...hosts);
const plainHost = fc.constantFrom(...hosts.filter((host) => !host.startsWith('*')), 's', 's');
const exportTo = fc.constantFrom(undefined, ['*'], ['.'], ['b']);
const defined = <T extends object>(spec: T): object =>
  Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined));

/** Few names, so that objects meet: on one host, in one another's way, as each other's delegates. */
const serviceEntry = fc
  .record({
    namespace: anyNamespace,
    host: anyHost,
    exportTo,
    resolution: fc.constantFrom('STATIC', 'DNS', 'NONE'),
    protocol: fc.constantFrom('HTTP', 'TCP', 'TLS'),
    addresses: fc.constantFrom([], ['10.5.0.1'], ['10.5.0.2', '10.5.0.3']),
    endpoints: fc.subarray(['10.9.0.1', '10.9.0.2', '10.1.0.1', '10.1.0.2']),
    port: fc.constantFrom(...ports),
    labels: fc.constantFrom({}, { version: 'v1' }, { version: 'v1', 'security.istio.io/tlsMode': 'istio' }),
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, host, age, endpoints, port, protocol, labels, resolution, ...spec }) =>
    givenObject(
      'ServiceEntry',
      namespace,
      host.replace('*', 'any'),
      defined({
        ...spec,
        hosts: [host],
        resolution: host.startsWith('*') ? 'NONE' : resolution,
        location: 'MESH_INTERNAL',
        ports: [{ number: port, name: 'p', protocol }],
        endpoints: endpoints.map((address, index) => ({
          address,
          labels: index === 0 ? labels : {},
          locality: `r${index}`,
        })),
      }),
      age,
    ),
  );

const virtualService = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('one', 'two', 'three'),
    host: fc.option(anyHost, { nil: undefined }),
    to: plainHost,
    subset: fc.constantFrom(...subsets),
    delegate: fc.option(fc.constantFrom('one', 'two', 'three'), { nil: undefined }),
    exportTo,
    sourceLabels: fc.constantFrom(undefined, { app: 'web' }),
    tcp: fc.boolean(),
    timeoutMs: fc.constantFrom(1000, 2000),
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, name, host, to, subset, delegate, sourceLabels, tcp, timeoutMs, age, ...rest }) => {
    const route = [{ destination: defined({ host: to, subset: subset || undefined }) }];
    const match = sourceLabels && [{ sourceLabels }];
    const leads = delegate !== undefined && host !== undefined;
    const http = [defined({ match, ...(leads ? { delegate: { name: delegate } } : { timeoutMs, route }) })];
    const routes = tcp && host !== undefined ? { tcp: [{ route }] } : { http };
    const spec = defined({ ...rest, hosts: host === undefined ? [] : [host], ...routes });
    return givenObject('VirtualService', namespace, name, spec, age);
  });

const destinationRule = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('one', 'two'),
    host: fc.constantFrom(...hosts, '*.test', 's'),
    exportTo,
    workloadSelector: fc.constantFrom(undefined, { labels: { app: 'web' } }),
    requests: fc.constantFrom(1, 2),
    sticky: fc.boolean(),
    withSubset: fc.boolean(),
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, name, requests, sticky, withSubset, age, ...rest }) => {
    const connectionPool = { http: { http2MaxRequests: requests }, tcp: { idleTimeoutMs: requests * 1000 } };
    const loadBalancer = sticky ? { consistentHash: { useSourceIp: true } } : undefined;
    const spec = defined({
      ...rest,
      trafficPolicy: defined({ connectionPool, loadBalancer, outlierDetection: sticky ? {} : undefined }),
      subsets: withSubset ? [{ name: 'v1', labels: { version: 'v1' } }] : undefined,
    });
    return givenObject('DestinationRule', namespace, name, spec, age);
  });

const sidecar = fc
  .record({
    namespace: anyNamespace,
    hosts: fc.subarray(['./*', '*/x.test', 'a/*', 'b/y.test', '~/*', '*/*'], { minLength: 1 }),
    port: fc.constantFrom(undefined, { number: 80, name: 'http', protocol: 'HTTP' }),
    forward: fc.boolean(),
    proxied: fc.boolean(),
  })
  .map(({ namespace, hosts: imported, port, forward, proxied }) => {
    const own = { port: { number: 8080, name: 'http', protocol: 'HTTP' }, defaultEndpoint: '0.0.0.0:8081' };
    const egress = [defined({ hosts: imported, port, captureMode: 'DEFAULT' })];
    const ingress = forward ? [{ ...own, captureMode: 'DEFAULT' }] : undefined;
    const egressProxy = { host: 's', port: { number: 80 } };
    const outboundTrafficPolicy = proxied ? { mode: 'ALLOW_ANY', egressProxy } : undefined;
    return givenObject('Sidecar', namespace, 'default', defined({ egress, ingress, outboundTrafficPolicy }));
  });

const gateway = fc
  .record({ namespace: anyNamespace, port: fc.constantFrom(80, 8080), host: fc.constantFrom('*/*', 'a/x.test') })
  .map(({ namespace, port, host }) => {
    const servers = [{ port: { number: port, name: 'http', protocol: 'HTTP' }, hosts: [host] }];
    return givenObject('Gateway', namespace, 'gw', { selector: {}, servers });
  });

const peerMode = fc.constantFrom('UNSET', 'DISABLE', 'PERMISSIVE', 'STRICT');
const peerAuthentication = fc
  .record({
    namespace: anyNamespace,
    name: fc.constantFrom('one', 'two'),
    selector: fc.constantFrom(undefined, { version: 'v1' }, { app: 'web' }),
    mtls: peerMode,
    ofPort: peerMode,
    age: fc.constantFrom(0, 5),
  })
  .map(({ namespace, name, selector, mtls, ofPort, age }) => {
    const portLevelMtls = selector && { 80: ofPort };
    return givenObject('PeerAuthentication', namespace, name, defined({ selector, mtls, portLevelMtls }), age);
  });

const objects = fc.oneof(
  { weight: 5, arbitrary: serviceEntry },
  { weight: 4, arbitrary: virtualService },
  { weight: 4, arbitrary: destinationRule },
  { weight: 1, arbitrary: sidecar },
  { weight: 1, arbitrary: gateway },
  { weight: 1, arbitrary: peerAuthentication },
);
/** What happens together: puts, and removals of what is there (by place in the list of all that was ever put). */
const step = fc.record({ puts: fc.array(objects, { maxLength: 2 }), removals: fc.array(fc.nat(20), { maxLength: 1 }) });

const clients = [
  { ip: '10.9.0.1', namespace: 'a', labels: { app: 'web' }, metadata: { ISTIO_VERSION: '1.30.0' } },
  { ip: '10.9.0.2', namespace: 'a', locality: 'r1' },
  { ip: '10.9.0.3', namespace: 'b', metadata: { INTERCEPTION_MODE: 'NONE' } },
  { ip: '10.9.0.4', namespace: 'istio-system', type: 'router' },
] as const;

const assignments = hosts.flatMap((host) =>
  ports.flatMap((port) => subsets.map((subset) => `outbound|${port}|${subset}|${host}`)),
);
const routes = [...ports.map(String), '8080', 'http.80', 'http.8080', 'x.test:80', 'nonsense'];

type State = Readonly<Record<string, readonly (readonly [string, string])[]>>;

/** Names and versions of all that a node has. */
function stateOf(node: MeshNode): State {
  return Object.fromEntries(
    watched.map((type) => {
      const names = type === endpointType ? assignments : type === routeType ? routes : '*';
      const all = [...node.get(type, names)!.resources].map(([name, { version }]) => [name, version] as const);
      // By name they come in any order.
      return [type, names === '*' ? all : all.sort(([a], [b]) => (a < b ? -1 : 1))];
    }),
  );
}

/** Names that are in one of them only, or have another version in the other. */
function differing(a: State[string], b: State[string]): string[] {
  const [before, after] = [new Map(a), new Map(b)];
  return [...new Set([...before.keys(), ...after.keys()])].filter((name) => before.get(name) !== after.get(name));
}

function connectAll(world: GivenWorld): MeshNode[] {
  return clients.map(({ ip, ...about }) => world.connect(ip, about));
}

describe('contexts and caches that go on from the last ones', () => {
  it('give every proxy what they would give if all were built anew, and leave out no proxy that a change concerns', () => {
    fc.assert(
      fc.property(
        fc.array(objects, { maxLength: 8 }),
        fc.array(step, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(undefined, []),
        (start, steps, registries) => {
          const worldOf = (all: Iterable<Config>) => new GivenWorld([...all], undefined, registries);
          const present = new Map(start.map((object) => [configKeyText(configKeyOf(object)), object]));
          const world = worldOf(present.values());
          const nodes = connectAll(world);
          let held = nodes.map(stateOf);
          const everPut = [...present.keys()];
          for (const { puts, removals } of steps) {
            const edits: Record<string, Config | undefined> = {};
            for (const index of removals) {
              const key = everPut[index];
              if (key !== undefined && present.delete(key)) edits[key] = undefined;
            }
            for (const object of puts) {
              const key = configKeyText(configKeyOf(object));
              present.set(key, object);
              everPut.push(key);
              edits[key] = object;
            }
            const change = world.change(edits);
            const fresh = connectAll(worldOf(present.values())).map(stateOf);
            held = nodes.map((node, index) => {
              const concerned = node.concernedTypes(change, watched);
              const now = stateOf(node);
              expect(now, `node ${index} after ${Object.keys(edits)}`).toEqual(fresh[index]);
              for (const type of watched) {
                if (concerned.includes(type)) continue;
                const news = differing(held[index]![type]!, now[type]!);
                // Endpoints of clusters that come or change are asked for with them, and sent with them.
                const asked = type === endpointType ? differing(held[index]![clusterType]!, now[clusterType]!) : [];
                expect(
                  news.filter((name) => !asked.includes(name)),
                  `${type} of node ${index}, not pushed after ${Object.keys(edits)}`,
                ).toEqual([]);
              }
              return now;
            });
          }
        },
      ),
      { numRuns: Number(process.env.PROPERTY_RUNS ?? 60) },
    );
  }, 120_000);
});
