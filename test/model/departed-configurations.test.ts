/** Configurations whose listener is no longer configured (src/discovery/xds/rollout/departed-configurations.ts). */
import { afterEach, describe, expect, test } from 'vitest';
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../machines/discovery/xds/ads-types.ts';
import { describeWait } from '../../src/discovery/monitor/debug/wait-text.ts';
import { acknowledgedClient, type RolloutClient } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  /** A client with a listener that fetches route r. */
  function withListener(): RolloutClient {
    const client = acknowledgedClient(delta);
    client.source.setFetching('l', 'r');
    client.request(listenerType);
    client.take();
    return client;
  }

  /** The listener fetches another route configuration, which names a new cluster. */
  function renameRoutes({ source, world }: RolloutClient): void {
    source.setFetching('l', 'r2');
    source.setWithoutHosts('r');
    source.set(clusterType, 'b');
    source.setNaming(routeType, 'r2', 'b');
    world.push(clusterType, listenerType, routeType);
  }

  /** Names of the configurations of a type that debug pages show as retained. */
  const waitingNames = ({ world }: RolloutClient, typeUrl: string): string[] =>
    world
      .waitsOf(typeUrl)
      .map(describeWait)
      .flatMap(({ kind, name, why }) =>
        kind === 'kept' && why.includes('until the proxy unsubscribes') ? [name] : [],
      );

  /** The client fetches r2 as well as r. */
  function fetchRenamed(client: RolloutClient): void {
    client.request(routeType, delta ? ['r2'] : ['r', 'r2'], client.world.watch(routeType)!.nonceSent);
    for (const response of client.world.readAll())
      client.ack(response, response.typeUrl === routeType ? ['r', 'r2'] : []);
  }

  /** The client's listeners have drained, so it uses only r2. */
  function unsubscribe(client: RolloutClient): void {
    if (delta) client.world.sendDelta({ typeUrl: routeType, resourceNamesUnsubscribe: ['r'] });
    else client.request(routeType, ['r2'], client.world.watch(routeType)!.nonceSent);
  }

  test('removed configurations are not sent without hosts while the client is subscribed to them', () => {
    const client = withListener();
    renameRoutes(client);
    expect(client.take().filter((text) => text.startsWith('RouteConfiguration'))).toEqual([]);
  });

  test('removed configurations are shown as kept until the client unsubscribes, even when idle', () => {
    const client = withListener();
    expect(waitingNames(client, routeType)).toEqual([]);
    renameRoutes(client);
    client.take();
    expect(client.world.rollout.held).toEqual([]);
    fetchRenamed(client);
    expect(waitingNames(client, routeType)).toEqual(['r']);
    unsubscribe(client);
    expect(waitingNames(client, routeType)).toEqual([]);
  });

  test('removed configurations are sent without hosts if a listener fetches them', () => {
    const client = withListener();
    client.source.setWithoutHosts('r');
    client.world.push(routeType);
    expect(client.take()).toEqual(['RouteConfiguration r']);
  });

  test('removed configurations are sent with hosts if a listener fetches them again', () => {
    const client = withListener();
    renameRoutes(client);
    client.take();
    client.source.setFetching('l', 'r');
    client.source.setNaming(routeType, 'r', 'a');
    client.world.push(listenerType, routeType);
    expect(client.take()).toEqual(['Listener l', 'RouteConfiguration r']);
    expect(waitingNames(client, routeType)).toEqual([]);
  });

  test('configurations without hosts are sent to a client that does not have them yet', () => {
    const client = withListener();
    client.source.setWithoutHosts('other');
    client.request(routeType, delta ? ['other'] : ['r', 'other'], client.world.watch(routeType)!.nonceSent);
    expect(client.take().at(-1)).toContain('other');
  });

  /** Contents of the route configurations that the client reads, by name; it acknowledges all of them. */
  function readRoutes(client: RolloutClient, names: readonly string[]): Record<string, string> {
    const responses = client.world.readAll();
    for (const one of responses)
      client.ack(one, one.typeUrl === routeType ? names : client.world.watch(one.typeUrl)?.names);
    return Object.assign(
      {},
      ...responses.filter(({ typeUrl }) => typeUrl === routeType).map((one) => Object.fromEntries(one.resources)),
    );
  }

  /** Makes the listener fetch r3 instead of r2 before the client uses r2. */
  function renameAgain({ source, world }: RolloutClient): void {
    source.setFetching('l', 'r3');
    source.setWithoutHosts('r2');
    source.setNaming(routeType, 'r3', 'a');
    world.push(clusterType, listenerType, routeType);
  }

  test('removed configurations are not sent without hosts if they were held back when their listener was replaced', () => {
    const client = withListener();
    client.source.usability.set('b', { usableAfter: 'warming', assignment: 'b', secrets: new Set() });
    renameRoutes(client);
    const clusters = client.world.read()!;
    const { nonceSent } = client.world.watch(routeType)!;
    readRoutes(client, ['r']);
    client.request(routeType, delta ? ['r2'] : ['r', 'r2'], nonceSent);
    expect(Object.keys(readRoutes(client, ['r', 'r2']))).not.toContain('r2');
    renameAgain(client);
    readRoutes(client, ['r', 'r2']);
    client.request(routeType, delta ? ['r3'] : ['r', 'r2', 'r3'], client.world.watch(routeType)!.nonceSent);
    client.ack(clusters);
    const read = readRoutes(client, ['r', 'r2', 'r3']);
    expect(read).toMatchObject({ r3: client.source.contentsOf(routeType).get('r3') });
    expect(Object.keys(read)).not.toContain('r2');
  });

  test.each([['is', true], ['is about to be']])(
    'removed configurations are not sent without hosts if they are first requested when their listener %s replaced',
    (_when, isReplaced = false) => {
      const client = withListener();
      renameRoutes(client);
      readRoutes(client, ['r']);
      const { source, world } = client;
      const { nonceSent } = world.watch(routeType)!;
      if (isReplaced) renameAgain(client);
      else {
        source.setFetching('l', 'r3');
        source.setWithoutHosts('r2');
      }
      client.request(routeType, delta ? ['r2'] : ['r', 'r2'], nonceSent);
      expect(Object.keys(readRoutes(client, ['r', 'r2']))).not.toContain('r2');
      expect(waitingNames(client, routeType)).toContain('r2');
      source.setFetching('l', 'r2');
      source.setNaming(routeType, 'r2', 'a');
      world.push(listenerType, routeType);
      expect(readRoutes(client, ['r', 'r2'])).toMatchObject({ r2: source.contentsOf(routeType).get('r2') });
    },
  );

  test('extension configurations are not removed while the client is subscribed to them', () => {
    const client = withListener();
    client.source.set(clusterType, 'b');
    client.source.set(endpointType, 'b');
    client.source.setNaming(extensionType, 'e', 'b');
    client.world.push(clusterType, endpointType);
    client.take();
    client.requestEndpoints('b');
    client.request(extensionType, ['e']);
    client.take();
    client.source.remove(extensionType, 'e');
    client.source.remove(clusterType, 'b');
    client.world.push(clusterType, extensionType);
    expect(client.take().filter((text) => text.startsWith('TypedExtension'))).toEqual([]);
    expect(client.world.rollout.retained).toMatchObject([{ name: 'b', state: 'named' }]);
    expect(waitingNames(client, extensionType)).toEqual(['e']);
  });

  test('removed configurations keep the cluster that they name until the client unsubscribes from them', () => {
    const client = withListener();
    renameRoutes(client);
    client.take();
    client.source.remove(clusterType, 'a');
    client.world.push(clusterType);
    client.take();
    expect(client.world.rollout.retained).toMatchObject([{ name: 'a', state: 'named' }]);
  });
});
