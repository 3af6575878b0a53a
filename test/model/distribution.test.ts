/** When the distribution of a cluster's objects to the proxies is checked (machines/discovery/distribution/distribution.machine.ts). */
import { expect, it } from 'vitest';
import type { DistributionSummary } from '../../machines/discovery/distribution/distribution.machine.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const finishedSummary: DistributionSummary = { unfinished: 0, tookMs: 1 };
const unfinishedSummary: DistributionSummary = { unfinished: 3, tookMs: 1 };

eachWorldFollowsTheDiagrams(['distribution'], ['computing']);

async function createWorld(computation: DiscoveryWorld['computation']): Promise<DiscoveryWorld> {
  const world = await DiscoveryWorld.startServing({
    cluster: { server: 'https://cluster', resources: [], firstInformer: 1 },
  });
  world.computation = computation;
  return world;
}

async function reportChange(world: DiscoveryWorld): Promise<void> {
  world.sendFrom('distribution/facts', { type: 'distribution.changed' });
  await world.settle();
}

/** Times of checks, since the first event. */
const checksSince = (world: DiscoveryWorld, from: number): number[] => world.computedAt.map((at) => at - from);

it('simultaneous changes are checked once, shortly afterwards, and not again', async () => {
  const world = await createWorld(finishedSummary);
  const from = world.clock.now();
  await reportChange(world);
  await reportChange(world);
  await world.passTime(60_000);
  expect(checksSince(world, from)).toEqual([100]);
});

it('a check is repeated with increasing delays until all proxies have the objects', async () => {
  const world = await createWorld(unfinishedSummary);
  const from = world.clock.now();
  await reportChange(world);
  await world.passTime(25_000);
  expect(checksSince(world, from)).toEqual([100, 600, 1_600, 3_600, 7_600, 12_600, 17_600, 22_600]);
  world.computation = finishedSummary;
  await world.passTime(60_000);
  expect(world.computedAt).toHaveLength(9);
});

it('a rejection is checked within 1 s, even during long delays and checks', async () => {
  const world = await createWorld({ unfinished: 1, tookMs: 2_000 });
  await reportChange(world);
  await world.passTime(60_000);
  const from = world.clock.now();
  const checksBefore = world.computedAt.length;
  await reportChange(world);
  await world.passTime(1_000);
  expect(world.computedAt.slice(checksBefore).some((at) => at - from <= 1_000)).toBe(true);
});

it('a change during a check is checked next', async () => {
  const pendingComputation = Promise.withResolvers<DistributionSummary>();
  const world = await createWorld(pendingComputation.promise);
  await reportChange(world);
  await world.passTime(100);
  await reportChange(world);
  await world.passTime(10_000);
  expect(world.computedAt).toHaveLength(1);
  world.computation = finishedSummary;
  pendingComputation.resolve(finishedSummary);
  await world.passTime(60_000);
  expect(world.computedAt).toHaveLength(2);
});

it('a check that throws is retried', async () => {
  const world = await createWorld(new Error('bug'));
  await reportChange(world);
  await world.passTime(100);
  world.computation = finishedSummary;
  await world.passTime(60_000);
  expect(world.computedAt).toHaveLength(2);
});

it('checks take at most 5 % of the time', async () => {
  const world = await createWorld({ unfinished: 1, tookMs: 100 });
  const from = world.clock.now();
  await reportChange(world);
  await world.passTime(20_000);
  const [first, ...laterChecks] = checksSince(world, from);
  expect(first).toBe(100);
  expect(laterChecks.every((at, index) => at - [first!, ...laterChecks][index]! >= 2_000)).toBe(true);
});
