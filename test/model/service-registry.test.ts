/** Services and endpoints: when they are computed again, and what the start waits for. */
import { describe, expect, it } from 'vitest';
import type { ServicesReading } from '../../machines/discovery/registry/service-registry.setup.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

eachWorldFollowsTheDiagrams(['configuration', 'registries'], ['computing', 'feed']);

const baseReading: ServicesReading = { services: 2, endpoints: 4, changedServices: [], changedEndpoints: [] };
const changedReading: ServicesReading = { ...baseReading, changedServices: ['ServiceEntry/shop/cart'] };
const syncingState = 'active.operating.syncing registries';
const consul = 'Consul/dc1';

/** A control plane whose Consul registry has not reported its services. */
async function withSlowConsul(): Promise<DiscoveryWorld> {
  const world = new DiscoveryWorld({}, { registries: ['External/c1', consul], slowRegistries: [consul] });
  await world.settle();
  return world;
}

const waitedFor = (world: DiscoveryWorld): unknown[] =>
  world.events('services.pending').map(({ registries }) => registries);

describe('service-registry', () => {
  it('retries a failed computation of services with increasing delays', async () => {
    const world = await DiscoveryWorld.startServing();
    world.services = new Error('a bug of a registry');
    world.fromRegistry('External/c1', 'changed');
    await world.passTime(6_999);
    expect(world.events('services.failed')).toHaveLength(3);
    world.services = changedReading;
    await world.passTime(1);
    expect(world.events('push.request').at(-1)).toMatchObject({ configs: ['ServiceEntry/shop/cart'] });
    world.services = new Error('a bug of a registry');
    world.fromRegistry('External/c1', 'changed');
    await world.passTime(1_000);
    expect(world.events('services.failed')).toHaveLength(5);
  });

  it.each([
    ['a registry reports a change', (world: DiscoveryWorld) => world.fromRegistry('External/c1', 'changed')],
    [
      'gateway names resolve to other addresses',
      (world: DiscoveryWorld) => world.sendFrom('service-registry/registries', { type: 'gateways.resolved' }),
    ],
    ['a registry is added', (world: DiscoveryWorld) => world.listRegistries('External/c1', consul)],
    ['a registry is removed', (world: DiscoveryWorld) => world.listRegistries()],
  ])('requests a push if %s', async (_, happens) => {
    const world = await DiscoveryWorld.startServing();
    world.services = changedReading;
    happens(world);
    await world.passTime(100);
    expect(world.events('clients.push')).toMatchObject([{ configs: ['ServiceEntry/shop/cart'] }]);
  });

  it('computes pending changes in the same step in which it requests a push', async () => {
    const world = await DiscoveryWorld.startServing();
    world.services = changedReading;
    for (let time = 0; time < 3; time++) world.fromRegistry('External/c1', 'changed');
    await world.settle();
    expect(world.events('push.request')).toHaveLength(2);
  });

  it('waits until all registries have reported their services, and reports pending registries', async () => {
    const world = await withSlowConsul();
    await world.passTime(2_000);
    expect(world.state()).toBe(syncingState);
    expect(waitedFor(world).at(-1)).toEqual([consul]);
    expect([world.computedFrom, world.events('services.synced')]).toEqual([[], []]);
    world.fromRegistry(consul, 'synced');
    await world.settle();
    expect(world.events('services.synced')).toMatchObject([{ missing: [] }]);
    expect(world.computedFrom[0]).toEqual(['External/c1', consul]);
    expect(world.state()).toBe('active.operating.serving');
  });

  it('waits until the list of registries is known', async () => {
    const world = new DiscoveryWorld({}, { listsLate: true });
    await world.passTime(1_000);
    expect([world.state(), waitedFor(world)]).toEqual([syncingState, [['the list of registries']]]);
    world.listRegistries('External/c1');
    await world.settle();
    expect(world.state()).toBe('active.operating.serving');
  });

  it('serves without a registry that has not reported its services within 30 s, and reports this', async () => {
    const world = await withSlowConsul();
    for (let halfSecond = 0; halfSecond < 59; halfSecond++) {
      await world.passTime(500);
      // Changes of another registry do not extend the wait.
      world.fromRegistry('External/c1', 'changed');
    }
    await world.settle();
    expect(world.state()).toBe(syncingState);
    await world.passTime(500);
    expect(world.events('services.synced')).toMatchObject([{ missing: [consul] }]);
    expect(world.state()).toBe('active.operating.serving');
    world.services = changedReading;
    world.fromRegistry(consul, 'synced');
    await world.passTime(100);
    expect(world.events('clients.push')).toMatchObject([{ configs: ['ServiceEntry/shop/cart'] }]);
  });

  it('delays the start by at most 30 s for an unreachable registry, which it retries with increasing delays', async () => {
    const world = new DiscoveryWorld({}, { registries: ['External/c1', consul], unreachableRegistries: [consul] });
    await world.passTime(29_999);
    expect([world.state(), waitedFor(world).at(-1)]).toEqual([syncingState, [consul]]);
    await world.passTime(1);
    expect(world.state()).toBe('active.operating.serving');
    const tries = world.events('registry.failed');
    expect(tries[0]).toMatchObject({ registry: consul, reason: 'connection refused' });
    await world.passTime(600_000);
    expect(world.events('registry.failed').length - tries.length).toBeLessThan(2 * 21);
    world.unreachableRegistries = [];
    await world.passTime(30_000);
    expect(world.events('registry.synced').at(-1)).toMatchObject({ registry: consul });
  });

  it('keeps the services of a registry while it is unreachable', async () => {
    const world = await DiscoveryWorld.startServing();
    world.fromRegistry('External/c1', 'failed');
    await world.passTime(999);
    expect(world.computedFrom).toEqual([['External/c1']]);
    expect(world.pendingWork()).not.toContain('registry-1/feed');
    await world.passTime(1);
    expect(world.pendingWork()).toContain('registry-1/feed');
    expect(world.computedFrom.at(-1)).toEqual(['External/c1']);
  });

  it('has an actor for each registry, including added and replaced ones', async () => {
    const world = await DiscoveryWorld.startServing();
    world.listRegistries('External/c1', 'Kubernetes/east');
    await world.settle();
    world.listRegistries('External/c1', 'Kubernetes/east@2');
    await world.settle();
    expect(world.pendingWork().filter((name) => name.startsWith('registry-'))).toEqual([
      'registry-1/feed',
      'registry-3/feed',
    ]);
    world.listRegistries('External/c1');
    await world.settle();
    expect(world.pendingWork()).not.toContain('registry-3/feed');
    expect(world.computedFrom.at(-1)).toEqual(['External/c1']);
  });
});
