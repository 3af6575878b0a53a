/** A cluster changes its type in place: Envoy uses the previous version, with its endpoints, until the next one is warm. */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType } from '../../machines/discovery/xds/ads-types.ts';
import { acknowledgedClient, type RolloutClient } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

/** Makes the generators forget a cluster's endpoints. */
function emptyEndpoints({ source }: RolloutClient, name: string): void {
  source.set(endpointType, name);
  source.emptyAssignments.add(source.contentsOf(endpointType).get(name)!);
}

/** Makes the cluster resolve names. */
function resolveNames(client: RolloutClient): void {
  const { source } = client;
  source.set(clusterType, 'a');
  source.usability.set(source.contentsOf(clusterType).get('a')!, {
    usableAfter: 'warming',
    assignment: 'a',
    secrets: new Set(),
  });
  emptyEndpoints(client, 'a');
}

/** Contents of assignments that the client receives. */
const assignments = ({ world }: RolloutClient): string[] =>
  world.readAll().flatMap(({ typeUrl, resources }) => (typeUrl === endpointType ? [...resources.values()] : []));

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  test('endpoints are unchanged if the next version of their cluster resolves names', () => {
    const client = acknowledgedClient(delta);
    const previousContent = client.source.contentsOf(endpointType).get('a')!;
    resolveNames(client);
    client.world.push(clusterType, endpointType);
    expect(assignments(client).filter((content) => content !== previousContent)).toEqual([]);
  });

  test('endpoints of the next version are sent when the cluster fetches them again', () => {
    const client = acknowledgedClient(delta);
    resolveNames(client);
    client.world.push(clusterType, endpointType);
    client.take();
    client.source.set(clusterType, 'a');
    client.source.set(endpointType, 'a');
    client.world.push(clusterType, endpointType);
    expect(assignments(client)).toEqual([client.source.contentsOf(endpointType).get('a')]);
  });

  test('a cluster version is replaced if it is outdated when the client requests its endpoints', () => {
    const client = acknowledgedClient(delta);
    const { source, world } = client;
    const resolved = { usableAfter: 'warming', assignment: 'b', secrets: new Set<string>() } as const;
    const setResolved = (): void => {
      source.set(clusterType, 'b');
      source.usability.set(source.contentsOf(clusterType).get('b')!, resolved);
      emptyEndpoints(client, 'b');
    };
    setResolved();
    world.push(clusterType);
    client.take();
    source.set(clusterType, 'b');
    source.set(endpointType, 'b');
    world.push(clusterType);
    expect(world.readAll().map(({ typeUrl }) => typeUrl)).toEqual([clusterType]);
    setResolved();
    world.push(clusterType, endpointType);
    expect(world.readAll()).toEqual([]);
    client.request(endpointType, delta ? ['b'] : ['a', 'b'], world.watch(endpointType)?.nonceSent);
    // The next version arrives first, and needs no endpoints.
    const [clusters] = world.readAll();
    expect(clusters?.resources.get('b')).toBe(source.contentsOf(clusterType).get('b'));
  });

  test('a cluster that fetches endpoints receives an empty assignment if it has none', () => {
    const client = acknowledgedClient(delta);
    emptyEndpoints(client, 'a');
    client.world.push(endpointType);
    expect(assignments(client)).toEqual([client.source.contentsOf(endpointType).get('a')]);
  });
});
