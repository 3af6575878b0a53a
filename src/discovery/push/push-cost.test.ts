import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { clusterType, endpointType, listenerType, routeType } from '../../networking/index.ts';
import type { ResourceChange } from '../xds/resource-source.ts';
import type { MeshNode } from './mesh-resources.ts';

const services = 50;
const sidecars = 500;
const watched = [clusterType, endpointType, listenerType, routeType];
const host = (index: number): string => `svc-${index}.a.svc.cluster.local`;
const names = Array.from({ length: services }, (_, index) => `outbound|8080||${host(index)}`);

function serviceEntry(index: number, address = `10.1.0.${index}`): Config {
  return givenObject('ServiceEntry', 'a', `s${index}`, {
    hosts: [host(index)],
    addresses: [`10.250.0.${index + 1}`],
    ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address }, { address: `10.2.0.${index}` }],
  });
}

function virtualService(index: number, timeoutMs = 1000): Config {
  const route = [{ destination: { host: host(index) } }];
  return givenObject('VirtualService', 'a', `v${index}`, { hosts: [host(index)], http: [{ timeoutMs, route }] });
}

function destinationRule(index: number, http2MaxRequests = 10): Config {
  const trafficPolicy = { connectionPool: { http: { http2MaxRequests } } };
  return givenObject('DestinationRule', 'a', `d${index}`, { host: host(index), trafficPolicy });
}

function worldOf(): { world: GivenWorld; nodes: MeshNode[] } {
  const indexes = Array.from({ length: services }, (_, index) => index);
  const world = new GivenWorld(indexes.flatMap((i) => [serviceEntry(i), virtualService(i), destinationRule(i)]));
  const nodes = Array.from({ length: sidecars }, (_, index) => world.connect(`10.9.${index >> 8}.${index & 255}`));
  return { world, nodes };
}

const requestedNames = (typeUrl: string): readonly string[] | '*' =>
  typeUrl === endpointType ? names : typeUrl === routeType ? ['8080'] : '*';

/** Requests all types that each node watches. */
function takeAll(nodes: readonly MeshNode[]): void {
  for (const node of nodes) for (const typeUrl of watched) node.get(typeUrl, requestedNames(typeUrl));
}

interface Cost {
  /** Number of built values. */
  readonly misses: number;
  readonly encoded: number;
  /** Types pushed to each node, which are equal for all nodes. */
  readonly types: readonly string[];
  /** Number of distinct lists. */
  readonly lists: number;
  /** Number of changed resources. */
  readonly differing: number;
}

function costOf(world: GivenWorld, nodes: readonly MeshNode[], change: () => ResourceChange): Cost {
  const previous = new Map(watched.map((type) => [type, nodes[0]!.get(type, requestedNames(type))!.resources]));
  const counts = { misses: world.cache.counts.misses, encoded: world.encodings };
  const resourceChange = change();
  const lists = new Set<unknown>();
  const types = new Set<string>();
  for (const node of nodes) {
    for (const type of node.typesToPush(resourceChange, watched)) {
      types.add(type);
      lists.add(node.get(type, requestedNames(type))!.resources);
    }
  }
  const differingResources = [...types].flatMap((type) =>
    [...nodes[0]!.get(type, requestedNames(type))!.resources].filter(
      ([name, one]) => previous.get(type)!.get(name) !== one,
    ),
  );
  return {
    misses: world.cache.counts.misses - counts.misses,
    encoded: world.encodings - counts.encoded,
    types: [...types],
    lists: lists.size,
    differing: differingResources.length,
  };
}

describe(`a push to ${sidecars} sidecars of the same shape`, () => {
  const { world, nodes } = worldOf();

  it('generates and encodes everything once for the first push', () => {
    takeAll(nodes.slice(0, 1));
    const { misses } = world.cache.counts;
    const { encodings } = world;
    takeAll(nodes);
    expect(world.cache.counts.misses).toBe(misses);
    expect(world.encodings).toBe(encodings);
    expect(new Set(nodes.map((node) => node.shape)).size).toBe(1);
  });

  it('builds and encodes one assignment and one list after an endpoint change', () => {
    const cost = costOf(world, nodes, () => world.put(serviceEntry(7, '10.1.1.1')));
    expect(cost).toEqual({ misses: 1, encoded: 1, types: [endpointType], lists: 1, differing: 1 });
  });

  it('builds one virtual host, and one configuration with its plan, after a route change', () => {
    const cost = costOf(world, nodes, () => world.put(virtualService(7, 2000)));
    // Clusters and listeners are requested, but their lists are unchanged.
    expect(cost).toMatchObject({ misses: 3, encoded: 1, lists: 3, differing: 1 });
  });

  it("builds the resources of one service after a change of the service's DestinationRule", () => {
    const cost = costOf(world, nodes, () => world.put(destinationRule(7, 20)));
    // The misses are a cluster, its assignment (unchanged), a virtual host, a configuration and its plan (unchanged).
    expect(cost).toMatchObject({ misses: 5, encoded: 3, differing: 1 });
  });

  it('costs nothing if a change does not affect the sidecars', () => {
    const gateway = givenObject('Gateway', 'a', 'g', { selector: {}, servers: [] });
    const cost = costOf(world, nodes, () => world.put(gateway));
    expect(cost).toEqual({ misses: 0, encoded: 0, types: [], lists: 0, differing: 0 });
  });

  it('builds each resource once while sidecars are served from two contexts', () => {
    const change = world.put(serviceEntry(3, '10.1.1.3'));
    const lateNode = nodes[0]!;
    for (const node of nodes.slice(1)) {
      node.typesToPush(change, watched);
      node.get(endpointType, names);
    }
    const { misses } = world.cache.counts;
    const oldList = lateNode.get(endpointType, names)!;
    expect(world.cache.counts.misses).toBe(misses);
    lateNode.typesToPush(change, watched);
    expect(lateNode.get(endpointType, names)!.resources).not.toBe(oldList.resources);
    expect(lateNode.get(endpointType, names)!.resources).toBe(nodes[1]!.get(endpointType, names)!.resources);
  });
});

describe('sidecars of different shapes', () => {
  it('share all resources that do not depend on the different labels', () => {
    const { world, nodes } = worldOf();
    takeAll(nodes.slice(0, 1));
    const { encodings } = world;
    takeAll([world.connect('10.8.0.1', { labels: { version: 'v2' } })]);
    // Only the workload's own listeners and clusters are rebuilt, without lookups.
    expect(world.encodings - encodings).toBeLessThan(10);
  });
});

describe('an EncodedCache that is too small', () => {
  it('returns all resources and stays within its limit', () => {
    const indexes = Array.from({ length: services }, (_, index) => index);
    const smallWorld = new GivenWorld(
      indexes.map((index) => serviceEntry(index)),
      10,
    );
    const largeWorld = worldOf().world;
    const node = smallWorld.connect('10.9.0.1');
    takeAll([node]);
    expect(smallWorld.cache.size).toBe(10);
    expect(smallWorld.cache.counts.evictions).toBeGreaterThan(0);
    const other = largeWorld.connect('10.9.0.1').get(endpointType, names)!.resources;
    expect([...node.get(endpointType, names)!.resources].map(([name, { version }]) => [name, version])).toEqual(
      [...other].map(([name, { version }]) => [name, version]),
    );
  });
});
