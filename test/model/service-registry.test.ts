/** Services and endpoints: when they are made again, and what the start waits for (spec/discovery.md §5.1, §5.5). */
import { describe, expect, it } from 'vitest';
import type { ServicesReading } from '../../machines/discovery/service-registry.machine.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';

const reading: ServicesReading = { services: 2, endpoints: 4, changedServices: [], changedEndpoints: [] };
const changed: ServicesReading = { ...reading, changedServices: ['ServiceEntry/shop/cart'] };
const awaited = 'at work.operating.syncing registries';

function registryChanges(world: DiscoveryWorld): void {
  world.from('service-registry/registries', { type: 'registries.changed' });
}

describe('service-registry', () => {
  it('makes services that could not be made again by itself, later each time', async () => {
    const world = await DiscoveryWorld.serving();
    world.services = new Error('a bug of a registry');
    registryChanges(world);
    await world.pass(6_999);
    expect(world.events('services.failed')).toHaveLength(3);
    world.services = changed;
    await world.pass(1);
    expect(world.events('push.request').at(-1)).toMatchObject({ configs: ['ServiceEntry/shop/cart'] });
    world.services = new Error('a bug of a registry');
    registryChanges(world);
    await world.pass(1_000);
    expect(world.events('services.failed')).toHaveLength(5);
  });

  it('asks for a push when a registry changes by itself', async () => {
    const world = await DiscoveryWorld.serving();
    world.services = changed;
    registryChanges(world);
    await world.pass(100);
    expect(world.events('clients.push')).toMatchObject([{ configs: ['ServiceEntry/shop/cart'] }]);
  });

  it('waits for the first list of every registry, and says of which it waits', async () => {
    const world = new DiscoveryWorld({});
    world.services = { ...reading, unsynced: ['Consul/dc1'] };
    await world.pass(2_000);
    expect(world.state()).toBe(awaited);
    expect(world.events('services.awaited')[0]).toMatchObject({ registries: ['Consul/dc1'] });
    expect(world.events('services.synced')).toEqual([]);
    world.services = reading;
    registryChanges(world);
    await world.settle();
    expect(world.events('services.synced')).toMatchObject([{ missing: [] }]);
    expect(world.state()).toBe('at work.operating.serving');
  });

  it('asks again by itself: a registry with an empty list has nothing to tell', async () => {
    const world = new DiscoveryWorld({});
    world.services = { ...reading, unsynced: ['Consul/dc1'] };
    await world.pass(5_000);
    world.services = reading;
    await world.pass(1_000);
    expect(world.state()).toBe('at work.operating.serving');
  });

  it('serves without a registry whose first list does not come in 30 s, and says so', async () => {
    const world = new DiscoveryWorld({});
    world.services = { ...reading, unsynced: ['Consul/dc1'] };
    for (let half = 0; half < 59; half++) {
      await world.pass(500);
      // However often another one moves.
      registryChanges(world);
    }
    await world.settle();
    expect(world.state()).toBe(awaited);
    await world.pass(500);
    expect(world.events('services.synced')).toMatchObject([{ missing: ['Consul/dc1'] }]);
    expect(world.state()).toBe('at work.operating.serving');
  });
});
