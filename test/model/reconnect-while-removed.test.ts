/** A cluster is removed while a client that uses it reconnects, between its requests for clusters and for endpoints. */
import { afterEach, describe, expect, test } from 'vitest';
import { clusterType, endpointType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { DepartedClusters } from '../../src/discovery/xds/rollout/departed-clusters.ts';
import { acknowledgedClient, shortTexts } from '../fixtures/rollout-client.ts';
import { AdsWorld } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  /** The client reconnects and requests clusters; then b replaces a. */
  function reconnected(departed: DepartedClusters): AdsWorld {
    const { source, world } = acknowledgedClient(delta, { departedClusters: new DepartedClusters(45_000) });
    const knownResource = source.types.get(endpointType)!.get('a')!;
    departed.add(
      { id: 'sidecar~10.0.0.1~a.b~b.svc', cluster: '', metadata: {} },
      { clusters: source.types.get(clusterType)!, assignments: new Map([['a', knownResource]]) },
      world.clock.now(),
    );
    world.call.emit('cancelled');
    const secondWorld = new AdsWorld({
      isDelta: delta,
      source,
      clock: world.clock,
      hasMakeBeforeBreak: true,
      departedClusters: departed,
    });
    const { version } = source.types.get(clusterType)!.get('a')!;
    if (delta) secondWorld.sendDelta({ typeUrl: clusterType, initialResourceVersions: { a: version } });
    else secondWorld.sendSotw({ typeUrl: clusterType, versionInfo: 'v' });
    source.set(clusterType, 'b');
    source.set(endpointType, 'b');
    source.setNaming(routeType, 'r', 'b');
    source.remove(clusterType, 'a');
    // As in the generators: an unknown name has no endpoints.
    source.set(endpointType, 'a');
    source.emptyAssignments.add(source.contentsOf(endpointType).get('a')!);
    secondWorld.push(clusterType, endpointType, routeType);
    return secondWorld;
  }

  function requestEndpoints(world: AdsWorld, version: string): void {
    const names = ['a'];
    if (delta) {
      const initialResourceVersions = { a: version };
      world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: names, initialResourceVersions });
    } else world.sendSotw({ typeUrl: endpointType, resourceNames: names, versionInfo: 'v' });
  }

  const endpointsOf = (world: AdsWorld): string[] =>
    world.readAll().flatMap(({ typeUrl, resources }) => (typeUrl === endpointType ? [...resources.values()] : []));

  test("endpoints of a removed cluster remain as on the client's last stream", () => {
    const world = reconnected(new DepartedClusters(45_000));
    const knownText = 'a=2';
    requestEndpoints(world, '2');
    // A client of delta xDS already has the endpoints in this version.
    expect(endpointsOf(world)).toEqual(delta ? [] : [knownText]);
  });

  test('endpoints that this replica has not sent are not replaced with an empty assignment', () => {
    const noClusters = new DepartedClusters(0);
    const world = reconnected(noClusters);
    requestEndpoints(world, '2');
    const endpointResponses = world.readAll().filter(({ typeUrl }) => typeUrl === endpointType);
    expect(endpointResponses.flatMap(({ resources, removedNames }) => [...resources.keys(), ...removedNames])).toEqual(
      [],
    );
    expect(endpointResponses.map(shortTexts)).not.toContain('ClusterLoadAssignment a');
  });

  test('endpoints that this replica has not sent are kept by a push after the reconnect', () => {
    const world = reconnected(new DepartedClusters(0));
    requestEndpoints(world, '2');
    const sentTexts: string[] = [];
    for (let response = world.read(); response !== undefined; response = world.read()) {
      const { typeUrl, nonce: responseNonce } = response;
      sentTexts.push(shortTexts(response));
      const resourceNames = typeUrl === endpointType ? ['a', 'b'] : [];
      if (delta) world.sendDelta({ typeUrl, responseNonce });
      else world.sendSotw({ typeUrl, responseNonce, resourceNames });
    }
    if (delta) world.sendDelta({ typeUrl: endpointType, resourceNamesSubscribe: ['b'] });
    world.push(endpointType);
    sentTexts.push(...world.readAll().map(shortTexts));
    expect(sentTexts.at(-1)).toBe('ClusterLoadAssignment b');
    expect(sentTexts.filter((one) => /^ClusterLoadAssignment.* -?a\b/.test(one))).toEqual([]);
  });
});
