/**
 * An Envoy that is warming a cluster requests no clusters on a new stream. If the cluster warms without end, clusters are sent without a request, and
 * those that may be the reason have a time limit.
 */
import { afterEach, describe, expect, test } from 'vitest';
import {
  clusterType,
  endpointType,
  listenerType,
  routeType,
  secretType,
} from '../../machines/discovery/xds/ads-types.ts';
import { firstSuspects } from '../../machines/discovery/xds/cluster-limit.ts';
import { shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld, type AdsWorldOptions, type ClientResponse } from '../simulation/ads-world.ts';
import { limitedMark, ScriptedSource } from '../simulation/scripted-source.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

const limitMs = 5_000;

/** A cluster that fetches secrets. */
function setFetching(source: ScriptedSource, name: string, ...secrets: string[]): void {
  source.usability.set(name, { usableAfter: 'assignment', assignment: name, secrets: new Set(secrets) });
  source.set(clusterType, name);
}

const clustersIn = (world: AdsWorld): ClientResponse[] =>
  world.readAll().filter(({ typeUrl }) => typeUrl === clusterType);

const limitedIn = (responses: readonly ClientResponse[]): string[] =>
  responses
    .filter(({ typeUrl }) => typeUrl === clusterType)
    .flatMap(({ resources }) => [...resources].flatMap(([name, text]) => (text.endsWith(limitedMark) ? [name] : [])));

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  /** Sends the requests of an Envoy that has cluster a and route r from a stopped control plane. */
  function reconnect(source: ScriptedSource, options: AdsWorldOptions = {}): AdsWorld {
    const world = new AdsWorld({ isDelta: delta, source, hasMakeBeforeBreak: true, ...options });
    const request = (typeUrl: string, names: string[], heldNames: string[]): void => {
      const versions = Object.fromEntries(heldNames.map((name) => [name, 'old']));
      if (delta) world.sendDelta({ typeUrl, resourceNamesSubscribe: names, initialResourceVersions: versions });
      else world.sendSotw({ typeUrl, resourceNames: names, versionInfo: 'old' });
    };
    request(endpointType, ['a'], ['a']);
    request(listenerType, [], ['l']);
    request(routeType, ['r'], ['r']);
    return world;
  }

  function createSource(): ScriptedSource {
    const source = new ScriptedSource();
    setFetching(source, 'a', 'late');
    source.set(endpointType, 'a');
    source.setNaming(listenerType, 'l', 'a');
    source.setNaming(routeType, 'r', 'a');
    return source;
  }

  /** Sends Envoy's request once nothing is warming: it lists its clusters and acknowledges them. */
  function acknowledge(world: AdsWorld, { nonce, resources }: ClientResponse): void {
    const versions = Object.fromEntries([...resources.values()].map((text) => text.split('=') as [string, string]));
    if (delta) world.sendDelta({ typeUrl: clusterType, responseNonce: nonce, initialResourceVersions: versions });
    else world.sendSotw({ typeUrl: clusterType, responseNonce: nonce, versionInfo: 'v' });
  }

  test('clusters are sent after the limit, before the waiting resources, with a timeout for the cluster that fetches a secret', () => {
    const world = reconnect(createSource());
    expect(world.readAll().map(shortTexts)).toEqual(['ClusterLoadAssignment a']);
    world.clock.advance(limitMs - 1);
    expect(world.readAll()).toEqual([]);
    world.clock.advance(1);
    const responses = world.readAll();
    expect(responses.map(shortTexts).slice(0, 3)).toEqual(['Cluster a', 'Listener l', 'RouteConfiguration r']);
    expect(limitedIn(responses)).toEqual(['a']);
    expect(world.rollout.givenUp).toMatchObject([{ name: 'a', isNew: false }]);
    expect([...world.abandonedClusters]).toEqual(['*', 'a']);
  });

  test('an ACK ends the search for blocking clusters, and later changes are sent immediately', () => {
    const source = createSource();
    const world = reconnect(source);
    world.readAll();
    world.clock.advance(limitMs);
    const [clusters] = world.readAll();
    acknowledge(world, clusters!);
    expect(world.watch(clusterType)).toMatchObject({ wildcard: true, nonceAcked: clusters!.nonce });
    expect(world.rollout.newClusters).toEqual([]);
    // In delta the first request gets a response: the client has everything.
    for (const { nonce, resources, removedNames } of clustersIn(world)) {
      expect([delta, resources.size, removedNames]).toEqual([true, 0, []]);
      world.sendDelta({ typeUrl: clusterType, responseNonce: nonce });
    }
    world.clock.advance(100_000);
    expect(clustersIn(world)).toEqual([]);
    source.set(clusterType, 'b');
    world.push(clusterType);
    expect(clustersIn(world).map(shortTexts)).toEqual([delta ? 'Cluster b' : 'Cluster a b']);
  });

  test('clusters are not sent without a request if the client requests them in time', () => {
    const world = reconnect(createSource());
    world.readAll();
    world.clock.advance(limitMs - 1);
    if (delta) world.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: 'old' } });
    else world.sendSotw({ typeUrl: clusterType, versionInfo: 'old' });
    const [clusters] = world.readAll();
    if (delta) world.sendDelta({ typeUrl: clusterType, responseNonce: clusters!.nonce });
    else world.sendSotw({ typeUrl: clusterType, responseNonce: clusters!.nonce, versionInfo: 'v' });
    world.clock.advance(100_000);
    expect(clustersIn(world)).toEqual([]);
    expect(world.rollout.givenUp).toEqual([]);
  });

  test.each([
    ['is no Envoy', { isEnvoy: false }],
    ['has a stream for endpoints alone', { onlyType: endpointType }],
    ['has a stream for listeners alone', { onlyType: listenerType }],
  ])('a client that %s receives no clusters without a request', (_name, options) => {
    const world = reconnect(createSource(), options);
    world.clock.advance(100_000);
    expect(clustersIn(world)).toEqual([]);
    expect(world.awaitsClusters).toBe(false);
    expect(world.rollout.newClusters).toEqual([]);
  });

  test('a client whose clusters take no endpoints receives clusters too', () => {
    const world = new AdsWorld({ isDelta: delta, source: createSource(), hasMakeBeforeBreak: true });
    if (delta) world.sendDelta({ typeUrl: listenerType, initialResourceVersions: { l: 'old' } });
    else world.sendSotw({ typeUrl: listenerType, versionInfo: 'old' });
    expect(world.readAll()).toEqual([]);
    world.clock.advance(limitMs);
    expect(world.readAll().map(shortTexts)).toEqual(['Cluster a', 'Listener l']);
  });

  test('endpoints of an unconfigured cluster are not replaced with an empty assignment, because its routes can be in use', () => {
    const source = createSource();
    source.remove(clusterType, 'a');
    const world = reconnect(source);
    expect(world.readAll().flatMap(({ resources }) => [...resources.keys()])).toEqual([]);
    if (!delta) return;
    // After the limit, cluster a is removed like any other cluster that is no longer configured.
    world.clock.advance(limitMs);
    expect(world.rollout.retained.map(({ name }) => name)).toEqual(['a']);
  });

  describe('with more suspected clusters than the limit of one step', () => {
    const suspectCount = 3 * firstSuspects;
    const names = Array.from({ length: suspectCount }, (_, index) => `c${String(index).padStart(3, '0')}`);

    function createLargeSource(secretsOf: (name: string) => string[]): ScriptedSource {
      const source = createSource();
      for (const name of names) setFetching(source, name, ...secretsOf(name));
      return source;
    }

    /** Number of clusters given up after each limit. */
    function steps(world: AdsWorld, count: number): number[] {
      const sizes: number[] = [];
      for (let step = 0; step < count; step++) {
        world.clock.advance(limitMs);
        world.readAll();
        sizes.push(world.rollout.givenUp.length);
      }
      return sizes;
    }

    test('the rarest clusters are given up first, then as many more at each limit, until all are given up', () => {
      const world = reconnect(createLargeSource((name) => ['common', ...(name === 'c250' ? ['rare'] : [])]));
      expect(steps(world, 1)).toEqual([firstSuspects]);
      expect(world.rollout.givenUp.map(({ name }) => name)).toEqual(expect.arrayContaining(['a', 'c250']));
      expect(steps(world, 4)).toEqual([2 * firstSuspects, suspectCount + 1, suspectCount + 1, suspectCount + 1]);
      expect(world.awaitsClusters).toBe(false);
      expect(world.abandonedClusters.size).toBe(suspectCount + 2);
    });

    test('no further clusters are given up after the client acknowledges them', () => {
      const world = reconnect(createLargeSource(() => ['common']));
      world.readAll();
      world.clock.advance(limitMs);
      const [clusters] = world.readAll();
      acknowledge(world, clusters!);
      expect(steps(world, 3)).toEqual([firstSuspects, firstSuspects, firstSuspects]);
    });

    test('clusters that fetch a requested missing secret are given up before others', () => {
      const source = createLargeSource((name) => (name < 'c200' ? ['missing'] : ['common']));
      source.set(secretType, 'common');
      const world = reconnect(source, { servesSecrets: true });
      if (delta) world.sendDelta({ typeUrl: secretType, resourceNamesSubscribe: ['missing', 'common'] });
      else world.sendSotw({ typeUrl: secretType, resourceNames: ['missing', 'common'] });
      expect(steps(world, 1)).toEqual([200]);
      expect(world.rollout.givenUp.map(({ name }) => name)).toEqual(names.filter((name) => name < 'c200'));
      // Envoy waits 15 s for the missing secret before it acknowledges clusters.
      expect(steps(world, 4)).toEqual([200, 200, 200, suspectCount + 1]);
    });

    test('each cluster is eventually given up if the client requests all and acknowledges none', () => {
      const world = new AdsWorld({
        isDelta: delta,
        source: createLargeSource((name) => [name]),
        hasMakeBeforeBreak: true,
      });
      const heldVersions = Object.fromEntries(['a', ...names].map((name) => [name, 'old']));
      if (delta) world.sendDelta({ typeUrl: clusterType, initialResourceVersions: heldVersions });
      else world.sendSotw({ typeUrl: clusterType, versionInfo: 'old' });
      world.readAll();
      const sizes = steps(world, 4);
      // In delta the changed clusters are known, and are given up together.
      expect(sizes.at(0)).toBe(delta ? suspectCount + 1 : firstSuspects);
      expect(sizes.at(-1)).toBe(suspectCount + 1);
      expect(world.watch(clusterType)!.nonceAcked).toBe('');
    });
  });
});
