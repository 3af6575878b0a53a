/** The DNS server of the control plane, as its chart opens the port (machines/discovery/names/name-server.machine.ts). */
import { describe, expect, it } from 'vitest';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const port = 'name-server/port';

eachWorldFollowsTheDiagrams(['name-server'], ['port']);

async function createWorld(): Promise<DiscoveryWorld> {
  const world = new DiscoveryWorld({ servesNames: true });
  await world.settle();
  expect(world.state()).toBe('active.operating.serving');
  return world;
}

const countStarts = (world: DiscoveryWorld): number =>
  world.records.filter((record) => record.kind === 'spawn' && record.actor === port).length;

describe('the DNS server port', () => {
  it('is opened only if an address is configured', async () => {
    const world = new DiscoveryWorld();
    await world.settle();
    expect(countStarts(world)).toBe(0);
  });

  it('is retried with delays that double up to 30 s while it is in use, and the control plane serves', async () => {
    const world = await createWorld();
    const pauses = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    for (const [index, pause] of pauses.entries()) {
      expect(countStarts(world)).toBe(index + 1);
      world.sendFrom(port, { type: 'port.closed', reason: ':15053: in use' });
      await world.passTime(pause - 1);
      expect(countStarts(world)).toBe(index + 1);
      await world.passTime(1);
    }
    expect(world.events('names.failed')).toHaveLength(pauses.length);
    expect(world.state()).toBe('active.operating.serving');
  });

  it('is reopened after the shortest delay if it was open for 1 min', async () => {
    const world = await createWorld();
    world.sendFrom(port, { type: 'port.closed', reason: 'in use' });
    await world.passTime(500);
    world.sendFrom(port, { type: 'port.listening', address: ':15053' });
    await world.passTime(60_000);
    world.sendFrom(port, { type: 'port.closed', reason: 'lost' });
    await world.passTime(500);
    expect(countStarts(world)).toBe(3);
    expect(world.events('names.listening')).toMatchObject([{ address: ':15053' }]);
  });

  it('is retried if the operating system does not respond', async () => {
    const world = await createWorld();
    await world.passTime(5_500);
    expect(countStarts(world)).toBe(2);
  });
});
