/** When it is looked what has become of a cluster's objects in the proxies (machines/discovery/distribution/distribution.machine.ts). */
import { expect, it } from 'vitest';
import type { DistributionSummary } from '../../machines/discovery/distribution/distribution.machine.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const finished: DistributionSummary = { unfinished: 0, tookMs: 1 };
const unfinished: DistributionSummary = { unfinished: 3, tookMs: 1 };

eachWorldFollowsTheDiagrams(['distribution'], ['looking']);

async function given(look: DiscoveryWorld['look']): Promise<DiscoveryWorld> {
  const world = await DiscoveryWorld.serving({
    cluster: { server: 'https://cluster', resources: [], firstInformer: 1 },
  });
  world.look = look;
  return world;
}

async function stirred(world: DiscoveryWorld): Promise<void> {
  world.from('distribution/facts', { type: 'distribution.changed' });
  await world.settle();
}

/** When it was looked, counted from the first time that something happened. */
const looksSince = (world: DiscoveryWorld, from: number): number[] => world.looks.map((at) => at - from);

it('what happens at the same time is looked at once, a moment later, and then no more', async () => {
  const world = await given(finished);
  const from = world.clock.now();
  await stirred(world);
  await stirred(world);
  await world.pass(60_000);
  expect(looksSince(world, from)).toEqual([100]);
});

it('while objects are not in all proxies it is looked again, more and more rarely', async () => {
  const world = await given(unfinished);
  const from = world.clock.now();
  await stirred(world);
  await world.pass(25_000);
  expect(looksSince(world, from)).toEqual([100, 600, 1_600, 3_600, 7_600, 12_600, 17_600, 22_600]);
  world.look = finished;
  await world.pass(60_000);
  expect(world.looks).toHaveLength(9);
});

it('a rejection is looked at within a second, however rarely it was looked before, and however long that takes', async () => {
  const world = await given({ unfinished: 1, tookMs: 2_000 });
  await stirred(world);
  await world.pass(60_000);
  const from = world.clock.now();
  const before = world.looks.length;
  await stirred(world);
  await world.pass(1_000);
  expect(world.looks.slice(before).some((at) => at - from <= 1_000)).toBe(true);
});

it('what happens while it is looked is looked at next', async () => {
  const look = Promise.withResolvers<DistributionSummary>();
  const world = await given(look.promise);
  await stirred(world);
  await world.pass(100);
  await stirred(world);
  await world.pass(10_000);
  expect(world.looks).toHaveLength(1);
  world.look = finished;
  look.resolve(finished);
  await world.pass(60_000);
  expect(world.looks).toHaveLength(2);
});

it('a look with a bug is tried again', async () => {
  const world = await given(new Error('bug'));
  await stirred(world);
  await world.pass(100);
  world.look = finished;
  await world.pass(60_000);
  expect(world.looks).toHaveLength(2);
});

it('looking costs a twentieth of the time', async () => {
  const world = await given({ unfinished: 1, tookMs: 100 });
  const from = world.clock.now();
  await stirred(world);
  await world.pass(20_000);
  const [first, ...others] = looksSince(world, from);
  expect(first).toBe(100);
  expect(others.every((at, index) => at - [first!, ...others][index]! >= 2_000)).toBe(true);
});
