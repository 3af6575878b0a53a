/**
 * What many namespaces cost, in this process and without a network: counted operations beside processor time.
 *
 *   node test/bench/scope-cost.ts routes 1000 50      services, namespaces; 500 sidecars take what they watch
 *   … --long                                          200 changes more, and whether the heap stays as it is
 *   … routes 1000 50 500 private                      every tenth service is of its namespace alone
 *   … routes 1000 50 500 sidecar                      a Sidecar object in each namespace, of everything; narrow: of its own
 *   … routes 1000 50 500 served                       each sidecar's workload serves a service
 *   … routes 1000 50 500 exported                     every second service is for three namespaces alone
 *   … routes 1000 50 500 named                        one service has another name (ExternalName)
 *   … routes 1000 1 20 locality                       each sidecar has another; labels, version, network: these are another
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { MeshNode } from '../../src/discovery/push/mesh-resources.ts';
import type { Config } from '../../src/model/config/config.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../src/networking/index.ts';
import { type GivenNodeOptions, GivenWorld, givenObject } from '../fixtures/given-world.ts';

const [, size = '1000', spaces = '50', sidecars = '500', variety = 'public'] = process.argv.slice(2);
const services = Number(size);
const namespaces = Number(spaces);
const space = (index: number): string => `ns-${index % namespaces}`;
const host = (index: number): string => `svc-${index}.${space(index)}.svc.cluster.local`;

const serviceEntry = (index: number, exportTo?: readonly string[]): Config =>
  givenObject('ServiceEntry', space(index), `se-${index}`, {
    hosts: [host(index)],
    addresses: [`10.250.${index >> 8}.${index & 255}`],
    ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: Array.from({ length: 2 }, (_, at) => ({ address: `10.${1 + at}.${index >> 8}.${index & 255}` })),
    ...(exportTo && { exportTo }),
  });
const virtualService = (index: number, timeoutMs = 1000): Config =>
  givenObject('VirtualService', space(index), `vs-${index}`, {
    hosts: [host(index)],
    http: [{ timeoutMs, retries: { attempts: 2 }, route: [{ destination: { host: host(index) } }] }],
  });
const destinationRule = (index: number, http2MaxRequests = 10): Config =>
  givenObject('DestinationRule', space(index), `dr-${index}`, {
    host: host(index),
    trafficPolicy: { connectionPool: { http: { http2MaxRequests } } },
  });
const sidecar = (index: number, hosts: readonly string[] = ['./*', 'istio-system/*']): Config =>
  givenObject('Sidecar', `ns-${index}`, 'default', { egress: [{ hosts, captureMode: 'DEFAULT' }] });

function externalName(index: number): Config {
  const addressing = { clusterIP: '', clusterIPs: [], ports: [], externalIPs: [], internalTrafficPolicy: 'Cluster' };
  const spec = { type: 'ExternalName', externalName: host(index), publishNotReadyAddresses: false, ...addressing };
  return givenObject('Service', space(index), `name-${index}`, { spec, status: { loadBalancer: { ingress: [] } } });
}

const all = Array.from({ length: services }, (_, index) => index);

function heapMb(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

function measureCpu<T>(name: string, work: () => T, formatResult: (result: T) => string = () => ''): T {
  const startUsage = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(startUsage);
  console.log(
    `${name.padEnd(40)} ${String(Math.round((user + system) / 100) / 10).padStart(9)} ms  ${formatResult(result)}`,
  );
  return result;
}

/** Properties that distinguish one sidecar from all others. */
function distinguishingOptions(index: number): GivenNodeOptions {
  if (variety === 'locality') return { locality: `region-${index}/zone/rack` };
  if (variety === 'labels') return { labels: { app: `app-${index}` } };
  if (variety === 'version') return { metadata: { ISTIO_VERSION: `1.${index}.0` } };
  return variety === 'network' ? { metadata: { NETWORK: `network-${index}` } } : {};
}

/** Generates resources in slices, like a stream. @returns CPU time of the longest slice, in milliseconds */
function generateInSlices(node: MeshNode, type: string, names: readonly string[] | '*'): number {
  let maxMs = 0;
  const measureStep = <T>(work: () => T): T => {
    const startUsage = process.threadCpuUsage();
    const result = work();
    const { user, system } = process.threadCpuUsage(startUsage);
    maxMs = Math.max(maxMs, (user + system) / 1000);
    return result;
  };
  const preparation = measureStep(() => node.prepare(type, names));
  while (preparation !== undefined && measureStep(() => preparation.runStep()));
  measureStep(() => (preparation === undefined ? node.get(type, names) : preparation.result()));
  return maxMs;
}

async function routes(): Promise<void> {
  const isPrivate = (index: number): boolean => variety === 'private' && index % 10 === 3;
  const exportedTo = (index: number): readonly string[] | undefined => {
    if (isPrivate(index)) return ['.'];
    if (variety !== 'exported' || index % 2 === 0) return undefined;
    return [0, 7, 14].map((offset) => space(index * 3 + offset));
  };
  const imports = { sidecar: ['*/*'], narrow: ['./*', 'istio-system/*'] }[variety];
  const objects = [
    ...all.flatMap((index) => [serviceEntry(index, exportedTo(index)), virtualService(index), destinationRule(index)]),
    ...Array.from({ length: imports ? namespaces : 0 }, (_, index) => sidecar(index, imports)),
    ...(variety === 'named' ? [externalName(1)] : []),
  ];
  const world = measureCpu('world', () => new GivenWorld(objects));
  const nodes = Array.from({ length: Number(sidecars) }, (_, index) =>
    world.connect(`10.${variety === 'served' ? 1 : 9}.${index >> 8}.${index & 255}`, {
      namespace: `ns-${index % namespaces}`,
      ...distinguishingOptions(index),
    }),
  );
  const names = all.map((index) => `outbound|8080||${host(index)}`);
  const watched = [clusterType, endpointType, listenerType, routeType];
  const requestedNames = (type: string) =>
    type === endpointType ? names : type === routeType ? ['8080'] : ('*' as const);
  const counts = () => ({ ...world.cache.counts, encodings: world.encodings });
  let last = counts();
  const spent = () => {
    const now = counts();
    const text = `misses ${now.misses - last.misses} encoded ${now.encodings - last.encodings} evicted ${now.evictions - last.evictions} kept ${world.cache.size}`;
    last = now;
    return text;
  };
  console.log(`heap ${heapMb().toFixed(0)} MB`);
  for (const type of watched) {
    let maxMs = 0;
    measureCpu(
      `initial ${type.split('.').at(-1)}`,
      () => {
        for (const node of nodes) maxMs = Math.max(maxMs, generateInSlices(node, type, requestedNames(type)));
      },
      () => `${spent()}, longest stretch ${maxMs.toFixed(0)} ms`,
    );
    const { rss, external } = process.memoryUsage();
    console.log(
      `  heap ${heapMb().toFixed(0)} MB, external ${(external / 1e6).toFixed(0)} MB, rss ${(rss / 1e6).toFixed(0)} MB`,
    );
  }
  console.log(`heap ${heapMb().toFixed(0)} MB, rss ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`);
  const push = (object: Config) => {
    const change = world.put(object);
    const affected = measureCpu('  whom it concerns', () =>
      nodes.map((node) => ({ node, types: node.typesToPush(change, watched) })),
    );
    for (const type of watched) {
      const affectedNodes = affected.filter(({ types }) => types.includes(type));
      if (affectedNodes.length === 0) continue;
      measureCpu(`  ${type.split('.').at(-1)}`, () =>
        affectedNodes.map(({ node }) => node.get(type, requestedNames(type))),
      );
    }
  };
  for (const round of [1, 2, 3]) {
    measureCpu(`route ${round}`, () => push(virtualService(7, 1000 + round)), spent);
  }
  measureCpu('rule', () => push(destinationRule(7, 20)), spent);
  measureCpu('service', () => push(serviceEntry(7, [...new Set(['*'])])), spent);
  measureCpu('a service comes', () => push(serviceEntry(services)), spent);
  measureCpu(
    'endpoint',
    () =>
      push({
        ...serviceEntry(8),
        spec: { ...(serviceEntry(8).spec as object), endpoints: [{ address: '10.77.0.1' }] },
        resourceVersion: 'x',
      }),
    spent,
  );
  console.log(`heap ${heapMb().toFixed(0)} MB, rss ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`);
  if (!process.argv.includes('--long')) return;
  for (const part of [1, 2, 3, 4]) {
    let cpuMs = 0;
    for (let at = 0; at < 50; at++) {
      const { user, system } = process.cpuUsage();
      const one = (at % 2 ? 7 : 3) * at + part;
      const ruleChange = world.put(
        at % 2 ? destinationRule(one % services, 20 + part) : virtualService(one % services, part),
      );
      for (const node of nodes)
        for (const type of node.typesToPush(ruleChange, watched)) node.get(type, requestedNames(type));
      const usage = process.cpuUsage({ user, system });
      cpuMs += (usage.user + usage.system) / 1000;
      // Weakly referenced objects are released between two event loop iterations.
      await turn();
    }
    await turn();
    const rss = (process.memoryUsage().rss / 1e6).toFixed(0);
    console.log(`50 changes, each ${(cpuMs / 50).toFixed(0)} ms; heap ${heapMb().toFixed(0)} MB, rss ${rss} MB`);
  }
}

await routes();
