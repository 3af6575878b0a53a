/** Memory of make-before-break for a connection: streams in the same state share it, and idle streams need none. */
import { describe, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../../../machines/discovery/xds/ads-types.ts';
import { newRollout } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import { acknowledgedClient, type RolloutClient } from '../../../../test/fixtures/rollout-client.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { VirtualClock } from '../../../../test/simulation/virtual-clock.ts';
import { RequestNameLists } from '../requests/request-names.ts';

/** Exceeds the removal delay and the time for which a removal waits for another response. */
const removedMs = 20_000;

function twoClients(delta: boolean): { clients: RolloutClient[]; source: ScriptedSource; clock: VirtualClock } {
  const [source, clock] = [new ScriptedSource(), new VirtualClock()];
  const sharedOptions = { source, clock, lists: new RequestNameLists() };
  const clients = [acknowledgedClient(delta, sharedOptions), acknowledgedClient(delta, sharedOptions)];
  // Each client adds the shared resources. The resources of the second client are the newest.
  for (const client of clients) {
    client.world.push(clusterType, endpointType, routeType);
    client.take();
  }
  return { clients, source, clock };
}

/** Moves the route from cluster a to b, and removes a. */
function replaceCluster(source: ScriptedSource, clients: readonly RolloutClient[]): void {
  for (const typeUrl of [clusterType, endpointType]) {
    source.remove(typeUrl, 'a');
    source.set(typeUrl, 'b');
  }
  source.setNaming(routeType, 'r', 'b');
  for (const { world } of clients) world.push(clusterType, endpointType, routeType);
}

const distinctMaps = (clients: readonly RolloutClient[], typeUrl: string): number =>
  new Set(clients.map(({ world }) => world.resourcesOf(typeUrl))).size;

describe.each([
  ['state of the world', false],
  ['delta', true],
])('make-before-break over %s', (_, delta) => {
  test('shares maps between clients with the same removed cluster and delayed route', () => {
    const { clients, source } = twoClients(delta);
    replaceCluster(source, clients);
    for (const client of clients) {
      client.read();
      client.ack(client.requestEndpoints('b'), ['a', 'b']);
      expect(client.take()).toEqual(['RouteConfiguration r']);
      expect([...client.world.resourcesOf(clusterType).keys()].sort()).toEqual(['a', 'b']);
      expect([...client.world.resourcesOf(endpointType).keys()].sort()).toEqual(['a', 'b']);
    }
    for (const typeUrl of [clusterType, endpointType, routeType])
      expect(distinctMaps(clients, typeUrl), typeUrl).toBe(1);
  });

  test('has no state for idle clients or types that are not watched', () => {
    const { clients, source, clock } = twoClients(delta);
    replaceCluster(source, clients);
    for (const client of clients) {
      client.take();
      client.ack(client.requestEndpoints('b'), ['a', 'b']);
      client.take();
    }
    expect(clients.map(({ world }) => world.rollout === newRollout)).toEqual([false, false]);
    clock.advance(removedMs);
    for (const client of clients) {
      client.take();
      expect([...client.world.resourcesOf(clusterType).keys()]).toEqual(['b']);
      expect(client.world.rollout).toBe(newRollout);
      expect(client.world.typesSent).toEqual(Object.keys(client.world.watches).sort());
    }
  });
});
