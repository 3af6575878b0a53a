/** Tests a registry that changes on its own, and completes its content later. */

import { afterEach, expect, test } from 'vitest';
import { givenMesh } from '../../../test/fixtures/given-mesh.ts';
import { ControlPlane, cartCluster, stopControlPlanes } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { MemoryRegistry } from './memory-registry.ts';
import type { RegistryOffers, XdsUpdater } from './registry.ts';

afterEach(stopControlPlanes);

class SlowRegistry extends MemoryRegistry {
  hasListed = false;

  /** Marks the content as complete. */
  list(): void {
    this.hasListed = true;
    this.notifySynced();
  }

  override hasSynced(): boolean {
    return super.hasSynced() && this.hasListed;
  }
}

const [cart] = givenMesh(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
`).registry.services;

function startPlane(env: NodeJS.ProcessEnv = {}): { plane: ControlPlane; registry: () => SlowRegistry } {
  let createdRegistry: SlowRegistry | undefined;
  const createRegistry = (updates: XdsUpdater): SlowRegistry => {
    createdRegistry = new SlowRegistry({ provider: 'Consul', cluster: 'dc1' }, updates);
    return createdRegistry;
  };
  const registries: RegistryOffers = (onOffers) => {
    onOffers([{ provider: 'Consul', clusterId: 'dc1', create: createRegistry }]);
    return () => {};
  };
  const plane = new ControlPlane({}, {}, () => {}, env, { registries });
  return { plane, registry: () => createdRegistry! };
}

test('a change that originates in a registry is pushed', async () => {
  const { plane, registry } = startPlane();
  await eventually('it runs', () => registry() !== undefined);
  registry().list();
  await plane.ready();
  const { stream, clusters } = await plane.subscribe();
  expect(clusters).not.toContain(cartCluster);
  stream.send({ typeUrl: stream.responses[0]!.typeUrl, responseNonce: stream.responses[0]!.nonce });
  registry().putService(cart!);
  expect((await stream.next()).resources.length).toBe(clusters.length + 1);
  expect(plane.deviations()).toEqual([]);
});

test('the control plane waits for the first list of a registry at start and reports this', async () => {
  const { plane, registry } = startPlane();
  const waits = 'not ready: syncing registries, waiting for registry Consul/dc1\n';
  const ready = async () => (await plane.get('/ready').catch(() => ({ text: '' }))).text === waits;
  await eventually('it says what it waits for', ready);
  registry().putService(cart!);
  registry().list();
  await plane.ready();
  expect((await plane.subscribe()).clusters).toContain(cartCluster);
  expect(plane.deviations()).toEqual([]);
});

test('the control plane starts without a list that is late, and applies it later', async () => {
  const { plane, registry } = startPlane({ PILOT_REMOTE_CLUSTER_TIMEOUT: '300ms' });
  await plane.ready();
  expect(linesOf(plane.lines, 'services.synced.missing', { registries: 'Consul/dc1' })).toHaveLength(1);
  const { stream, clusters } = await plane.subscribe();
  expect(clusters).not.toContain(cartCluster);
  stream.send({ typeUrl: stream.responses[0]!.typeUrl, responseNonce: stream.responses[0]!.nonce });
  registry().putService(cart!);
  expect((await stream.next()).resources.length).toBe(clusters.length + 1);
  expect(plane.deviations()).toEqual([]);
});
