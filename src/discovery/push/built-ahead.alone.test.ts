/**
 * In a new push context, everything is built for the first time. Parts that many proxies share are built in pieces, so that building for the first
 * proxy does not block others.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { isFull } from '../../../test/harness/size-of-run.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { DeltaDiscoveryResponseSchema } from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import { readConfigFile } from '../../model/config/config-file.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../networking/index.ts';
import type { EncodedResource } from '../xds/resource-source.ts';
import { frameOf } from '../xds/responses/ads-response.ts';
import type { MeshNode } from './mesh-resources.ts';

const services = 3_000;
const hostOf = (index: number): string => `svc-${index}.ns-${index % 30}.svc.cluster.local`;

const objects: readonly Config[] = Array.from({ length: services }, (_, index) => {
  const namespace = `ns-${index % 30}`;
  const entry = givenObject('ServiceEntry', namespace, `se-${index}`, {
    hosts: [hostOf(index)],
    addresses: [`10.250.${index >> 8}.${index & 255}`],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    endpoints: [{ address: `10.1.${index >> 8}.${index & 255}` }],
  });
  const route = givenObject('VirtualService', namespace, `vs-${index}`, {
    hosts: [hostOf(index)],
    http: [{ timeoutMs: 1_000, route: [{ destination: { host: hostOf(index) } }] }],
  });
  const rule = givenObject('DestinationRule', namespace, `dr-${index}`, {
    host: hostOf(index),
    trafficPolicy: { connectionPool: { http: { http2MaxRequests: 10 } } },
  });
  return [entry, route, rule];
}).flat();

const timeoutsOfOneVersion = `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: timeouts, namespace: istio-system}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND, proxy: {proxyVersion: '^1\\.27.*'}, cluster: {portNumber: 80}}
    patch: {operation: MERGE, value: {connect_timeout: 3s}}
`;

const responsesWithoutServer = `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: responses, namespace: istio-system}
spec:
  configPatches:
  - applyTo: ROUTE_CONFIGURATION
    match: {context: GATEWAY}
    patch: {operation: MERGE, value: {response_headers_to_remove: [server]}}
`;

/** Exports every seventh service to its own namespace only. */
function withPrivateServices(object: Config, index: number): Config {
  const isPrivate = object.kind === 'ServiceEntry' && index % 21 === 9;
  return isPrivate ? { ...object, spec: { ...(object.spec as object), exportTo: ['.'] } } : object;
}

let world: GivenWorld;

function nodeAt(address: string, namespace: string): MeshNode {
  world.connect(address, { namespace });
  return [...world.resources.nodes].find(({ proxy }) => proxy.ipAddresses.includes(address))!;
}

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Prepares all pieces, then builds the list. Measures CPU time and number of encoded resources of each step. */
function prepareInPieces(node: MeshNode, typeUrl: string, names: readonly string[] | '*') {
  const preparation = node.prepare(typeUrl, names);
  const steps: { ms: number; encoded: number }[] = [];
  const measureStep = <T>(work: () => T): T => {
    const [began, encodings] = [cpuMs(), world.encodings];
    const result = work();
    steps.push({ ms: cpuMs() - began, encoded: world.encodings - encodings });
    return result;
  };
  while (preparation !== undefined && measureStep(() => preparation.runStep()));
  const set = measureStep(() => preparation?.result() ?? node.get(typeUrl, names));
  return {
    list: [...set!.resources].map(([name, { version }]) => [name, version]),
    longestMs: Math.max(...steps.map(({ ms }) => ms)),
    sumMs: steps.reduce((sum, { ms }) => sum + ms, 0),
    mostEncoded: Math.max(...steps.map(({ encoded }) => encoded)),
    stretches: steps.length,
  };
}

function routesIn(resource: EncodedResource): RouteConfiguration {
  const [decoded] = fromBinary(DeltaDiscoveryResponseSchema, Buffer.concat(frameOf(resource, true))).resources;
  return fromBinary(RouteConfigurationSchema, decoded!.resource!.value);
}

beforeEach(() => {
  world = new GivenWorld(objects);
});

describe('EncodedCache in a new push context', () => {
  it('prepares clusters in pieces, with the same result as in one step', () => {
    const preparedList = prepareInPieces(nodeAt('10.9.0.1', 'ns-1'), clusterType, '*');
    expect(preparedList.mostEncoded).toBeLessThan(20);
    expect(preparedList.longestMs, JSON.stringify([preparedList.longestMs, preparedList.sumMs])).toBeLessThan(
      preparedList.sumMs / 3,
    );
    world = new GivenWorld(objects);
    const unpreparedList = nodeAt('10.9.0.1', 'ns-1').get(clusterType, '*')!;
    expect(preparedList.list).toEqual([...unpreparedList.resources].map(([name, { version }]) => [name, version]));
    expect(preparedList.list.length).toBeGreaterThan(services);
  });

  it.runIf(isFull)('prepares clusters with EnvoyFilter patches in pieces, independently of earlier clients', () => {
    const [filter] = readConfigFile('filter.yaml', timeoutsOfOneVersion, { creationTimestamp: 0 }).configs;
    const of = (version: string): MeshNode => {
      world.connect(`10.9.0.${version}`, { namespace: 'ns-1', metadata: { ISTIO_VERSION: `1.${version}.0` } });
      return [...world.resources.nodes].find(({ proxy }) => proxy.ipAddresses.includes(`10.9.0.${version}`))!;
    };
    world = new GivenWorld([...objects, filter!]);
    const plain = prepareInPieces(of('28'), clusterType, '*');
    const preparedList = prepareInPieces(of('27'), clusterType, '*');
    const plainVersions = new Map(plain.list as [string, string][]);
    expect(preparedList.list.filter(([name, version]) => plainVersions.get(name!) !== version)).toHaveLength(services);
    expect(preparedList.longestMs, JSON.stringify([preparedList.longestMs, preparedList.sumMs])).toBeLessThan(
      preparedList.sumMs / 3,
    );
    expect(preparedList.mostEncoded).toBeLessThan(20);
    world = new GivenWorld([...objects, filter!]);
    const unpreparedList = of('27').get(clusterType, '*')!;
    expect(preparedList.list).toEqual([...unpreparedList.resources].map(([name, { version }]) => [name, version]));
  });

  it.each([
    ['public', objects],
    ['of which some are private', objects.map(withPrivateServices)],
  ])(
    'prepares the routes of services (%s) in pieces, and builds only the differences for another namespace',
    (_, mesh) => {
      const lookupCount = (): number => world.cache.counts.hits + world.cache.counts.misses;
      world = new GivenWorld(mesh);
      const preparedList = prepareInPieces(nodeAt('10.9.0.1', 'ns-1'), routeType, ['80']);
      expect(preparedList.longestMs, JSON.stringify([preparedList.longestMs, preparedList.sumMs])).toBeLessThan(
        preparedList.sumMs / 2,
      );
      expect(preparedList.stretches).toBeGreaterThan(services / 10);
      const countBefore = lookupCount();
      const next = prepareInPieces(nodeAt('10.9.0.2', 'ns-2'), routeType, ['80']);
      // A hundred services in each of the two namespaces have other domains. Of private services in other namespaces, only rules remain.
      expect(lookupCount() - countBefore).toBeLessThan(services / 4);
      expect(next.stretches).toBeGreaterThan(3);
      expect(nodeAt('10.9.0.4', 'ns-2').prepare(routeType, ['80'])).toBeUndefined();
      for (const [namespace, { list }] of [['ns-1', preparedList] as const, ['ns-2', next] as const]) {
        world = new GivenWorld(mesh);
        const unpreparedList = nodeAt('10.9.0.1', namespace).get(routeType, ['80'])!;
        expect(list).toEqual([...unpreparedList.resources].map(([name, { version }]) => [name, version]));
      }
    },
  );

  it('shares the routes of the first namespace with others that connect simultaneously, and builds only their differences', () => {
    const lookupCount = (): number => world.cache.counts.hits + world.cache.counts.misses;
    prepareInPieces(nodeAt('10.9.0.1', 'ns-0'), routeType, ['80']);
    const singleLookups = lookupCount();
    world = new GivenWorld(objects);
    const nodes = Array.from({ length: 10 }, (_, index) => nodeAt(`10.9.0.${index}`, `ns-${index}`));
    let preparations = nodes.map((node) => node.prepare(routeType, ['80'])!);
    expect(preparations.map((preparation) => preparation.runStep())).not.toContain(false);
    // The node whose request started the build disconnects.
    preparations = preparations.slice(1);
    while (preparations.length > 0) preparations = preparations.filter((preparation) => preparation.runStep());
    expect(lookupCount()).toBeLessThan(singleLookups + nodes.length * (services / 4));
    const lists = nodes.map((node) => prepareInPieces(node, routeType, ['80']).list);
    for (const index of [0, 9]) {
      const freshList = new GivenWorld(objects)
        .connect('10.9.0.1', { namespace: `ns-${index}` })
        .get(routeType, ['80'])!;
      expect(lists[index]).toEqual([...freshList.resources].map(([name, { version }]) => [name, version]));
    }
  });

  it('lets a proxy that connects during a build continue that build', () => {
    const [one, other] = [nodeAt('10.9.0.1', 'ns-1'), nodeAt('10.9.0.2', 'ns-2')];
    const first = one.prepare(clusterType, '*')!;
    first.runStep();
    const secondPreparation = other.prepare(clusterType, '*')!;
    while (secondPreparation.runStep());
    expect(first.runStep()).toBe(false);
    const countBefore = world.encodings;
    expect([first, secondPreparation].map((preparation) => preparation.result()!.resources.size)).toEqual([
      services + 3,
      services + 3,
    ]);
    expect(world.encodings - countBefore).toBeLessThan(20);
    expect(nodeAt('10.9.0.3', 'ns-3').prepare(clusterType, '*')).toBeUndefined();
  });
});

describe('EncodedCache during a push', () => {
  const changedService = (timeoutMs: number): Config =>
    givenObject('VirtualService', 'ns-7', 'vs-7', {
      hosts: [hostOf(7)],
      http: [{ timeoutMs, route: [{ destination: { host: hostOf(7) } }] }],
    });

  it('prepares a full push in pieces, and rebuilds only what a changed object affects', () => {
    const node = nodeAt('10.9.0.1', 'ns-1');
    for (const type of [clusterType, routeType]) prepareInPieces(node, type, type === clusterType ? '*' : ['80']);
    const change = world.change({ [configKeyText(changedService(1))]: changedService(2_000) });
    expect(node.typesToPush(change, [clusterType, routeType])).toContain(routeType);
    const lookups = (): number => world.cache.counts.hits + world.cache.counts.misses;
    const countBefore = lookups();
    prepareInPieces(node, routeType, ['80']);
    expect(lookups() - countBefore).toBeLessThan(10);
    const { version } = world.state.publishContext({ forced: true, changedKeys: [] });
    node.typesToPush({ version, forced: true, configs: new Set() }, [clusterType]);
    expect(node.prepare(clusterType, '*')).toBeDefined();
    expect(node.prepare(endpointType, [`outbound|80||${hostOf(1)}`])).toBeUndefined();
  });

  it('prepares a list in pieces after a small change if no proxy had this list before', () => {
    const node = nodeAt('10.9.0.1', 'ns-1');
    node.typesToPush(world.change({ [configKeyText(changedService(1))]: changedService(2_000) }), [routeType]);
    const preparedList = prepareInPieces(node, routeType, ['80']);
    expect(preparedList.longestMs, JSON.stringify([preparedList.longestMs, preparedList.sumMs])).toBeLessThan(
      preparedList.sumMs / 2,
    );
    expect(preparedList.stretches).toBeGreaterThan(services / 10);
    const next = nodeAt('10.9.0.2', 'ns-2');
    next.typesToPush(world.change({ [configKeyText(changedService(1))]: changedService(3_000) }), [clusterType]);
    expect(prepareInPieces(next, clusterType, '*').mostEncoded).toBeLessThan(20);
  });

  it('prepares a list in pieces if the only changed object is very large', () => {
    const node = nodeAt('10.9.0.1', 'ns-1');
    prepareInPieces(node, routeType, ['80']);
    const largeService = givenObject('VirtualService', 'ns-7', 'vs-7', {
      hosts: [hostOf(7)],
      http: Array.from({ length: 4_000 }, (_, index) => ({
        match: [{ uri: { exact: `/${index}` } }],
        route: [{ destination: { host: hostOf(7) } }],
      })),
    });
    node.typesToPush(world.put(largeService), [routeType]);
    expect(node.prepare(routeType, ['80'])).toBeDefined();
  });

  it('prepares the routes of VirtualServices for unknown hosts in pieces', () => {
    const unknownHosts = Array.from({ length: 30 }, (_, index) =>
      givenObject('VirtualService', 'ns-1', `unknown-${index}`, {
        hosts: [`unknown-${index}.test`],
        http: Array.from({ length: 500 }, (_, route) => ({
          match: [{ uri: { exact: `/${route}` } }],
          route: [{ destination: { host: hostOf(1) } }],
        })),
      }),
    );
    world = new GivenWorld([...objects.slice(0, 30), ...unknownHosts]);
    const preparedList = prepareInPieces(nodeAt('10.9.0.1', 'ns-1'), routeType, ['80']);
    expect(preparedList.longestMs, JSON.stringify([preparedList.longestMs, preparedList.sumMs])).toBeLessThan(
      preparedList.sumMs / 4,
    );
    expect(preparedList.stretches).toBeGreaterThan(unknownHosts.length);
  });

  it('prepares listeners in pieces, one for each TCP service', () => {
    const tcp = objects
      .filter(({ kind }) => kind === 'ServiceEntry')
      .map((entry) => ({
        ...entry,
        spec: { ...(entry.spec as object), ports: [{ number: 5_000, name: 'tcp', protocol: 'TCP' }] },
      }));
    world = new GivenWorld(tcp);
    const preparedList = prepareInPieces(nodeAt('10.9.0.1', 'ns-1'), listenerType, '*');
    expect(preparedList.list.length).toBeGreaterThan(services);
    expect(preparedList.longestMs, JSON.stringify([preparedList.longestMs, preparedList.sumMs])).toBeLessThan(
      preparedList.sumMs / 3,
    );
    expect(preparedList.mostEncoded).toBeLessThan(20);
    expect(nodeAt('10.9.0.2', 'ns-1').prepare(listenerType, '*')).toBeUndefined();
    world = new GivenWorld(tcp);
    const unpreparedList = nodeAt('10.9.0.1', 'ns-1').get(listenerType, '*')!;
    expect(preparedList.list).toEqual([...unpreparedList.resources].map(([name, { version }]) => [name, version]));
  });

  it('prepares a single route configuration with thousands of routes in pieces', () => {
    const gateway = givenObject('Gateway', 'edge', 'gw', {
      selector: { istio: 'gw' },
      servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
    });
    const routes = (name: string, hosts: readonly string[]): Config =>
      givenObject('VirtualService', 'ns-1', name, {
        hosts,
        gateways: ['edge/gw'],
        http: Array.from({ length: 4_000 }, (_, index) => ({
          match: [{ uri: { exact: `/${index}` } }],
          route: [{ destination: { host: hostOf(1) } }],
        })),
      });
    const all = [...objects, gateway, routes('one', ['one.test']), routes('two', ['two.test'])];
    const edge = { namespace: 'edge', type: 'router', labels: { istio: 'gw' } } as const;
    world = new GivenWorld(all);
    const preparedList = prepareInPieces(world.connect('10.9.0.9', edge), routeType, ['http.80']);
    expect(preparedList.stretches).toBeGreaterThan(30);
    expect(preparedList.longestMs, JSON.stringify([preparedList.longestMs, preparedList.sumMs])).toBeLessThan(
      preparedList.sumMs / 4,
    );
    const unpreparedList = new GivenWorld(all).connect('10.9.0.9', edge).get(routeType, ['http.80'])!;
    expect(preparedList.list).toEqual([...unpreparedList.resources].map(([name, { version }]) => [name, version]));
    const { virtualHosts } = routesIn(unpreparedList.resources.get('http.80')!);
    expect(virtualHosts.map(({ name, domains, routes: ownRoutes }) => [name, domains, ownRoutes.length])).toEqual([
      ['one.test:80', ['one.test'], 4_000],
      ['two.test:80', ['two.test'], 4_000],
    ]);
    expect(new Set(virtualHosts[0]!.routes.map(({ match }) => match!.pathSpecifier.value)).size).toBe(4_000);
  });

  it('prepares a largely changed list in pieces, such as the routes of a gateway with many hosts', () => {
    const hosts = 600;
    const gateway = givenObject('Gateway', 'edge', 'gw', {
      selector: { istio: 'gw' },
      servers: Array.from({ length: hosts }, (_, index) => ({
        port: { number: 443, name: `https-${index}`, protocol: 'HTTPS' },
        hosts: [hostOf(index)],
        tls: { mode: 'SIMPLE', credentialName: `secret-${index}` },
      })),
    });
    world = new GivenWorld([...objects, gateway]);
    const node = world.connect('10.9.0.9', { namespace: 'edge', type: 'router', labels: { istio: 'gw' } });
    const names = Array.from({ length: hosts }, (_, index) => `https.443.https-${index}.gw.edge`);
    expect(prepareInPieces(node, routeType, names).list).toHaveLength(hosts);
    const [filter] = readConfigFile('filter.yaml', responsesWithoutServer, { creationTimestamp: 0 }).configs;
    node.typesToPush(world.put(filter!), [routeType]);
    const preparedList = prepareInPieces(node, routeType, names);
    expect(preparedList.list).toHaveLength(hosts);
    expect(preparedList.mostEncoded).toBeLessThan(100);
    expect(preparedList.stretches).toBeGreaterThan(hosts / 100);
  });
});
