/** A client reconnects while it drains the connections of a replaced listener (src/discovery/xds/rollout/draining-listeners.ts). */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType, listenerType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { DepartedClusters } from '../../src/discovery/xds/rollout/departed-clusters.ts';
import { acknowledgedClient, type RolloutClient, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';
import type { ScriptedSource } from '../simulation/scripted-source.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  const departedClusters = new DepartedClusters(45_000);
  /** Resources of an Envoy by type and name. */
  type ResourcesByType = Readonly<Record<string, Readonly<Record<string, string>>>>;

  /** Ends the stream; then the client requests its previous resources, in Envoy's order. */
  function reconnect({ world, source }: RolloutClient, previousResources: ResourcesByType): AdsWorld {
    world.call.emit('cancelled');
    const secondWorld = new AdsWorld({
      isDelta: delta,
      source,
      clock: world.clock,
      hasMakeBeforeBreak: true,
      departedClusters: departedClusters,
    });
    for (const [typeUrl, initialResourceVersions] of Object.entries(previousResources)) {
      const isWildcard = typeUrl === clusterType || typeUrl === listenerType;
      const names = isWildcard ? [] : Object.keys(initialResourceVersions);
      if (delta) secondWorld.sendDelta({ typeUrl, resourceNamesSubscribe: names, initialResourceVersions });
      else secondWorld.sendSotw({ typeUrl, resourceNames: names, versionInfo: 'v' });
    }
    return secondWorld;
  }

  /** Reads and acknowledges all responses, as short texts. @param previousResources names to which it subscribes */
  function readResponses(world: AdsWorld, previousResources: ResourcesByType): string[] {
    const response = world.read();
    if (response === undefined) return [];
    const { typeUrl, nonce: responseNonce } = response;
    const isWildcard = typeUrl === clusterType || typeUrl === listenerType;
    const resourceNames = isWildcard ? [] : Object.keys(previousResources[typeUrl] ?? {});
    if (delta) world.sendDelta({ typeUrl, responseNonce });
    else world.sendSotw({ typeUrl, responseNonce, resourceNames });
    return [shortTexts(response), ...readResponses(world, previousResources)];
  }

  const versionsOf = (source: ScriptedSource, typeUrl: string): Record<string, string> =>
    Object.fromEntries([...(source.types.get(typeUrl)?.values() ?? [])].map(({ name, version }) => [name, version]));

  /** A client with a listener that names cluster b. */
  function withListener(): RolloutClient {
    const client = acknowledgedClient(delta, { departedClusters: departedClusters });
    const { source, world } = client;
    source.usability.set('b', { usableAfter: 'at once', assignment: 'b', secrets: new Set() });
    source.set(clusterType, 'b');
    source.setNaming(listenerType, 'l', 'b');
    world.push(clusterType);
    client.take();
    client.request(listenerType);
    client.take();
    return client;
  }

  /** The listener names cluster a, and b is no longer configured. */
  function replaceListener({ source, world }: RolloutClient): void {
    source.setNaming(listenerType, 'l', 'a');
    source.remove(clusterType, 'b');
    world.push(clusterType, listenerType);
  }

  const hadOf = ({ source }: RolloutClient): ResourcesByType =>
    Object.fromEntries(
      [clusterType, endpointType, listenerType, routeType].map((typeUrl) => [typeUrl, versionsOf(source, typeUrl)]),
    );

  test.each([['before', true], ['while']])(
    'a cluster of a listener that was replaced %s the client was disconnected is kept for the drain time',
    (_when, isBefore = false) => {
      const client = withListener();
      const previousResources = hadOf(client);
      if (isBefore) {
        replaceListener(client);
        client.take();
        client.world.clock.advance(1_000);
      } else {
        client.source.setNaming(listenerType, 'l', 'a');
        client.source.remove(clusterType, 'b');
      }
      const secondWorld = reconnect(
        client,
        isBefore ? { ...hadOf(client), [clusterType]: previousResources[clusterType]! } : previousResources,
      );
      readResponses(secondWorld, previousResources);
      secondWorld.clock.advance(59_999);
      expect(readResponses(secondWorld, previousResources)).toEqual([]);
      expect(secondWorld.rollout.retained).toMatchObject([{ name: 'b', state: 'lingering', drains: true }]);
      secondWorld.clock.advance(15_001);
      expect(readResponses(secondWorld, previousResources)).toEqual([delta ? 'Cluster -b' : 'Cluster a']);
    },
  );

  test('later removals do not wait for a drain time', () => {
    const client = withListener();
    const previousResources = hadOf(client);
    const secondWorld = reconnect(client, previousResources);
    readResponses(secondWorld, previousResources);
    secondWorld.clock.advance(100_000);
    readResponses(secondWorld, previousResources);
    client.source.set(clusterType, 'c');
    secondWorld.push(clusterType);
    readResponses(secondWorld, previousResources);
    client.source.remove(clusterType, 'c');
    secondWorld.push(clusterType);
    secondWorld.clock.advance(10_000);
    expect(readResponses(secondWorld, previousResources)).toEqual([delta ? 'Cluster -c' : 'Cluster a b']);
  });

  test('the routes of a replaced listener are not sent without hosts in a push after the reconnect', () => {
    const client = acknowledgedClient(delta, { departedClusters: departedClusters });
    const { source, world } = client;
    source.setFetching('l', 'r');
    client.request(listenerType);
    client.take();
    const { r } = versionsOf(source, routeType);
    source.setFetching('l', 'r2');
    source.setWithoutHosts('r');
    source.setNaming(routeType, 'r2', 'a');
    world.push(listenerType, routeType);
    client.take();
    client.request(routeType, delta ? ['r2'] : ['r', 'r2'], world.watch(routeType)!.nonceSent);
    for (const response of world.readAll()) client.ack(response, response.typeUrl === routeType ? ['r', 'r2'] : []);
    const previousResources = { ...hadOf(client), [routeType]: { ...versionsOf(source, routeType), r: r! } };
    const secondWorld = reconnect(client, previousResources);
    const readTexts = readResponses(secondWorld, previousResources);
    for (let pushes = 0; pushes < 2; pushes++) {
      source.setNaming(routeType, 'r2', 'a');
      secondWorld.push(routeType);
      readTexts.push(...readResponses(secondWorld, previousResources));
    }
    expect(readTexts.at(-1)).toBe('RouteConfiguration r2');
    expect(readTexts.filter((text) => /^RouteConfiguration.* -?r\b/.test(text))).toEqual([]);
    expect(secondWorld.waitsOf(routeType)).toMatchObject([{ kind: 'kept', name: 'r' }]);
    // A listener that fetches the routes again needs a response.
    const { nonceSent: responseNonce } = secondWorld.watch(routeType)!;
    if (delta) {
      secondWorld.sendDelta({ typeUrl: routeType, resourceNamesUnsubscribe: ['r'] });
      secondWorld.sendDelta({ typeUrl: routeType, resourceNamesSubscribe: ['r'] });
    } else {
      secondWorld.sendSotw({ typeUrl: routeType, responseNonce, resourceNames: ['r2'] });
      secondWorld.sendSotw({ typeUrl: routeType, responseNonce, resourceNames: ['r', 'r2'] });
    }
    expect(readResponses(secondWorld, previousResources)).toEqual([expect.stringMatching(/^RouteConfiguration r\b/)]);
  });
});
