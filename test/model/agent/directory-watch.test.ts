/** A watch of a certificate directory that fails, and a directory that is removed and created. */
import { expect, test } from 'vitest';
import { createActor, fromCallback, setup } from 'xstate';
import { directoryWatchMachine } from '../../../machines/agent/files/directory-watch.machine.ts';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { VirtualClock } from '../../simulation/virtual-clock.ts';
import { checkEveryWorld, epochsStarted } from './scenes.ts';

checkEveryWorld();

const dayMs = 24 * 60 * 60_000;
const watchFailure = (knownHash: string | null) => ({ type: 'watch.failed', reason: 'ENOSPC', knownHash }) as const;

/** Times in milliseconds at which the pauses in the trace ended. */
const pausesOver = (world: AgentWorld): number[] =>
  world.records.flatMap((record) =>
    record.kind === 'transition' && record.actor === 'directory-0' && record.from === 'backing off' ? [record.t] : [],
  );

const gapsBetween = (times: readonly number[]): number[] => times.map((t, index) => t - (times[index - 1] ?? 0));

test('a watch that fails repeatedly is retried with delays that double up to 1 min, without affecting Envoy', async () => {
  const world = new AgentWorld();
  world.watchResult = 'watch.failed';
  await world.passTime(400_000);
  expect(gapsBetween(pausesOver(world)).slice(0, 10)).toEqual([
    500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000,
  ]);
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('config.rejected')).toEqual([]);
});

test('a watch that fails soon after each setup keeps its long delays, and one that lasts resets them', async () => {
  const world = await AgentWorld.startServing();
  for (const pauseMs of [500, 1_000, 2_000, 4_000]) {
    world.watch(watchFailure('digest-0'));
    await world.passTime(pauseMs);
  }
  expect(world.watches).toHaveLength(5);
  await world.passTime(59_999);
  world.watch(watchFailure('digest-0'));
  await world.passTime(7_999);
  expect(world.watches).toHaveLength(5);
  await world.passTime(1);
  expect(world.watches).toHaveLength(6);
  await world.passTime(60_000);
  world.watch(watchFailure('digest-0'));
  await world.passTime(500);
  expect(world.watches).toHaveLength(7);
});

test('a change during the delay is not lost', async () => {
  const world = await AgentWorld.startServing();
  world.watch(watchFailure('digest-0'));
  world.changeFiles('digest-1');
  await world.passTime(500);
  expect(world.watches.at(-1)).toEqual({ directory: '/certs', knownHash: 'digest-0' });
  await world.passTime(10_000);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('files are read again after a delay only if the directory changed or its previous state is unknown', async () => {
  const world = await AgentWorld.startServing();
  world.watch(watchFailure('digest-0'));
  await world.passTime(20_000);
  expect(world.judgeFlags).toHaveLength(1);
  world.watch(watchFailure(null));
  await world.passTime(20_000);
  expect(world.judgeFlags).toHaveLength(2);
  expect(epochsStarted(world)).toEqual([0]);
});

test('a watch that the kernel does not confirm is retried after a timeout, and earlier changes are detected', async () => {
  const world = new AgentWorld();
  world.watchResult = undefined;
  await world.settle();
  world.newestProcess().becomeLive();
  world.digest = 'digest-1';
  await world.passTime(10_499);
  expect(world.watches).toHaveLength(1);
  await world.passTime(1);
  expect(world.watches).toHaveLength(2);
  await world.passTime(10_000);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('a directory that is removed for a day is not a failure, and is watched again when it returns (§3.4)', async () => {
  const world = await AgentWorld.startServing();
  world.watch({ type: 'directory.missing' });
  const recordsBefore = world.records.length;
  await world.passTime(dayMs);
  // Epoch 0 becomes healthy; there are no other events that day.
  expect(world.records.length - recordsBefore).toBeLessThan(10);
  expect(world.watches).toHaveLength(1);
  world.watch({ type: 'directory.found' });
  world.watch({ type: 'watch.began' });
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('a directory that exists but cannot be watched is retried', async () => {
  const world = await AgentWorld.startServing();
  world.watch({ type: 'directory.missing' });
  world.watch({ type: 'directory.found' });
  await world.passTime(10_500);
  expect(world.watches).toHaveLength(2);
});

test('a watch that ends with an unexpected error is set up again, like after a failure', () => {
  const clock = new VirtualClock();
  const starts: number[] = [];
  const changes: number[] = [];
  const watchDirectory = fromCallback<{ type: never }, { directory: string; knownHash: string | null }>(() => {
    starts.push(clock.now());
    throw new Error('no such function');
  });
  const watcher = setup({
    actors: { directory: directoryWatchMachine.provide({ actors: { watchDirectory } }) },
    actions: { note: () => void changes.push(clock.now()) },
  }).createMachine({
    invoke: { src: 'directory', input: { directory: '/certs' } },
    on: { 'files.changed': { actions: 'note' } },
  });
  const actor = createActor(watcher, { clock: clock as never }).start();
  clock.advance(3_600);
  expect(starts).toEqual([0, 500, 1_500, 3_500]);
  // Changes between two watches are not detected.
  expect(changes).toEqual([500, 1_500, 3_500]);
  actor.stop();
});

test('a directory whose watch times out is retried, even if it was watched before', async () => {
  const world = await AgentWorld.startServing();
  world.watch({ type: 'directory.found' });
  await world.passTime(9_999);
  expect(world.watches).toHaveLength(1);
  // The next `directory.found` does not restart the limit.
  world.watch({ type: 'directory.found' });
  await world.passTime(501);
  expect(world.watches).toHaveLength(2);
});

test('a directory has one watch, even if it is listed twice', async () => {
  const watch = { directories: ['/a', '/b', '/a'], delayMs: 10_000, requiredFiles: [], requiredFilesLimitMs: 0 };
  const world = new AgentWorld({ watch });
  await world.settle();
  expect(world.watches.map(({ directory }) => directory)).toEqual(['/a', '/b']);
});
