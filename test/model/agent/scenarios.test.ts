/**
 * The scenarios of the supervisor, by their numbers. A comment at a test states where this agent differs from the reference on
 * purpose; without a comment, both behave the same.
 */
import { expect, test } from 'vitest';
import { AgentWorld, oneDirectory } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  epochsStarted,
  killedEnd,
  namesAlive,
  namesStarted,
  rejectChild,
} from './scenes.ts';

checkEveryWorld();

const orderedEnd = { exitCode: 0, trouble: [] };
const budgetOf = (budget: number, firstDelayMs = 200): object => ({
  retry: { budget, firstDelayMs, maxDelayMs: 30_000 },
});

// The reference starts another epoch with a configuration that only drains; this agent drains over the admin interface.
test('a stop drains the serving epoch over its admin interface, without a drain epoch (§2.8 S1)', async () => {
  const world = await AgentWorld.startServing({ terminationDrainMs: 0 });
  world.signal('SIGTERM');
  await world.passTime(0);
  expect(world.drainCalls).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
  expect(world.newestProcess().signals).toEqual(['SIGTERM']);
  await endProcess(world, world.newestProcess());
  expect(world.output()).toEqual(orderedEnd);
  expect(epochsStarted(world)).toEqual([0]);
});

test('an unchanged configuration starts no Envoy (§2.8 S2)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-0');
  world.signal('SIGTERM');
  await world.settle();
  await endProcess(world, world.newestProcess());
  expect(epochsStarted(world)).toEqual([0]);
});

// The reference treats the clean exit of `bad` like a parent's; here a child that exits before it is live has failed.
test('a configuration that is restored after an invalid one is still current, and starts no Envoy (§2.8 S3)', async () => {
  const world = await AgentWorld.startServing(budgetOf(0));
  await world.certificate('bad');
  await endProcess(world, world.newestProcess(), { code: 0 });
  await world.certificate('digest-0');
  await world.passTime(3_600_000);
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.cleanedUp).toEqual(['epoch-1']);
  expect(world.supervisorTags()).toEqual(['settled']);
});

// The reference aborts 0 and 1 when 2 fails; here 0 has exited before 2 starts, and 1 keeps serving.
test('a third epoch that exits with an error is the only one cleaned up, and no healthy epoch is aborted (§2.8 S4)', async () => {
  const world = await drainingWorld(budgetOf(10, 10_000));
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  await world.certificate('bad');
  await endProcess(world, world.process('epoch-2'), { code: 1 });
  expect(world.cleanedUp).toEqual(['epoch-0', 'epoch-2']);
  expect(world.process('epoch-1').signals).toEqual([]);
  await world.passTime(9_999);
  expect(namesAlive(world)).toEqual(['epoch-1']);
  await world.passTime(1);
  expect(namesAlive(world)).toEqual(['epoch-1', 'epoch-2']);
});

test('two failed starts and a successful third one are all epoch 0 (§2.8 S5)', async () => {
  const world = new AgentWorld();
  await world.settle();
  await endProcess(world, world.newestProcess(), { code: 1 });
  await world.passTime(200);
  await endProcess(world, world.newestProcess(), { code: 1 });
  await world.passTime(400);
  await becomesLive(world);
  expect(epochsStarted(world)).toEqual([0, 0, 0]);
  world.signal('SIGTERM');
  await world.settle();
  await endProcess(world, world.newestProcess());
  expect(world.output()).toEqual(orderedEnd);
});

test('failing starts have doubling delays, and an exhausted budget ends the agent once, with a report (§2.8 S6)', async () => {
  const shortBudgetWorld = new AgentWorld(budgetOf(1));
  await shortBudgetWorld.settle();
  await endProcess(shortBudgetWorld, shortBudgetWorld.newestProcess(), { code: 1 });
  await shortBudgetWorld.passTime(200);
  await endProcess(shortBudgetWorld, shortBudgetWorld.newestProcess(), { code: 1 });
  expect(epochsStarted(shortBudgetWorld)).toEqual([0, 0]);
  expect(shortBudgetWorld.output()?.exitCode).toBe(1);

  const world = new AgentWorld();
  await world.settle();
  const delays: number[] = [];
  for (let attempt = 0; attempt < 10; attempt++) {
    const failedAt = world.clock.now();
    world.newestProcess().exit({ code: 1, lastOutput: `reason ${attempt}` });
    await world.nextStart();
    delays.push(world.clock.now() - failedAt);
  }
  // The reference keeps doubling, to 102.4 s.
  expect(delays).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
  expect(new Set(epochsStarted(world))).toEqual(new Set([0]));
  await endProcess(world, world.newestProcess(), { code: 1, lastOutput: 'reason 10' });
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: [
      'agent exits: Envoy cannot be kept running',
      ...Array.from({ length: 11 }, (_, i) => `epoch-0, initializing: exit code 1: reason ${i}`),
    ],
  });
});

// The reference runs 0, 1 and 2 simultaneously and stops them through one another; here 0 has exited before 2 starts.
test('three successive configurations cause at most two processes per base ID, and no number is reused (§2.8 S7)', async () => {
  const world = await drainingWorld();
  await world.certificate('digest-2');
  await world.passTime(3_600);
  expect(namesAlive(world)).toEqual(['epoch-0', 'epoch-1']);
  await endProcess(world, world.process('epoch-0'), { code: 0 });
  await becomesLive(world);
  // 0 exited too early, so 1 is orphaned, as 2 would be: the next one starts under the other base ID while 1 serves.
  expect(namesAlive(world)).toEqual(['epoch-1', 'epoch-0b']);

  const patient = await drainingWorld();
  for (const [epoch, parent] of [
    [2, 'epoch-0'],
    [3, 'epoch-1'],
  ] as const) {
    await patient.certificate(`digest-${epoch}`);
    expect(patient.runningProcesses.size).toBe(2);
    await patient.passTime(50_000);
    await endProcess(patient, patient.process(parent));
    await becomesLive(patient);
  }
  expect(patient.cleanedUp).toEqual(['epoch-0', 'epoch-1']);
  expect(epochsStarted(patient)).toEqual([0, 1, 2, 3]);
});

// The reference starts nothing (1.1) or ends (1.6); here a clean exit of the current epoch is a failure, see S23.
test('an only Envoy that exits normally soon after start is followed by epoch 0 (§2.8 S8)', async () => {
  const world = new AgentWorld();
  await world.settle();
  await endProcess(world, world.newestProcess(), { code: 0 });
  await world.passTime(200);
  expect(epochsStarted(world)).toEqual([0, 0]);
});

// The reference aborts 0 when 2 crashes; here 0 has exited, and 1 drains until it crashes itself.
test('crashes of the newest and then the draining epoch lead to epoch 0, and no healthy epoch is aborted (§2.8 S9)', async () => {
  const world = await drainingWorld();
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  await world.certificate('digest-2');
  await becomesLive(world);
  await endProcess(world, world.process('epoch-2'), crashEnd);
  expect(world.process('epoch-1').signals).toEqual([]);
  await world.passTime(100);
  await endProcess(world, world.process('epoch-1'), crashEnd);
  // Epoch 2 is not live, and cannot become live without its parent.
  expect(world.process('epoch-2').signals).toEqual(['SIGKILL']);
  await endProcess(world, world.process('epoch-2'), killedEnd);
  await world.passTime(1_000);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-2', 'epoch-2', 'epoch-0']);
  await becomesLive(world);
  expect(world.supervisorTags()).toEqual(['settled']);
});

// The reference aborts 1 when 0 crashes; here 1 serves until its replacement is live.
test('a crash of the draining epoch causes a third start within 1 s, without aborting the serving epoch (§2.8 S10)', async () => {
  const world = await drainingWorld(budgetOf(10, 1));
  await endProcess(world, world.process('epoch-0'), crashEnd);
  await world.passTime(1_000);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
  expect(world.process('epoch-1').signals).toEqual([]);
  expect((await world.requestReadiness()).ready).toBe(true);
});

// The reference exits without an error; here the exit code is 1, so that the agent's launcher notices.
test('a first Envoy that exits immediately ends the agent with the policy exit (§2.8 S11)', async () => {
  const world = new AgentWorld({ restartPolicy: 'exit' });
  await world.settle();
  await endProcess(world, world.newestProcess(), { code: 0 });
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: ['agent exits: Envoy cannot be kept running', 'epoch-0, initializing: exit code 0'],
  });
  expect(epochsStarted(world)).toEqual([0]);
});

// The reference sends SIGKILL after the drain; this agent sends SIGTERM first, and waits for the exit.
test('a stop drains once, waits, ends Envoy by SIGTERM, and starts no Envoy (§2.8 S12)', async () => {
  const world = await AgentWorld.startServing();
  world.signal('SIGTERM');
  await world.settle();
  expect((await world.requestReadiness()).ready).toBe(false);
  await world.passTime(4_999);
  expect(world.newestProcess().signals).toEqual([]);
  await world.passTime(1);
  expect(world.newestProcess().signals).toEqual(['SIGTERM']);
  expect(world.output()).toBeUndefined();
  await endProcess(world, world.newestProcess());
  expect(world.output()).toEqual(orderedEnd);
  expect(world.drainCalls).toHaveLength(1);
  expect(epochsStarted(world)).toEqual([0]);
});

test('a restart that is requested soon after the start waits until epoch 0 is live (§2.8 S13)', async () => {
  const world = new AgentWorld();
  await world.settle();
  world.signal('SIGHUP');
  await world.passTime(2_000);
  expect(epochsStarted(world)).toEqual([0]);
  await becomesLive(world);
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.clock.now()).toBe(2_000);
});

// The reference starts epoch 1, which would look for a missing parent and abort; this agent starts epoch 0.
test('epoch 0 is followed within 1 s by epoch 0, not epoch 1, if it exits before it is live (§2.8 S14)', async () => {
  const world = new AgentWorld();
  await world.settle();
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0]);
  await endProcess(world, world.newestProcess(), { code: 1 });
  await world.passTime(1_000);
  expect(epochsStarted(world)).toEqual([0, 0]);
  await becomesLive(world);
  expect(world.supervisorTags()).toEqual(['settled']);
});

// The reference's agent always exits with Envoy; this one does so with the policy exit, and with a code other than 0 unless Envoy's was 0.
test('the agent ends together with Envoy and reports how, with the policy exit and hot restart off (§2.8 S15)', async () => {
  const world = await AgentWorld.startServing({ restartPolicy: 'exit', hotRestart: false });
  await endProcess(world, world.newestProcess(), { code: 4 });
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: ['agent exits: Envoy cannot be kept running', 'epoch-0, serving: exit code 4'],
  });
  expect(epochsStarted(world)).toEqual([0]);
});

test.each(['retry', 'exit'] as const)(
  'a stop during a cleanup ends the agent with policy %s (§2.8 S16)',
  async (restartPolicy) => {
    const world = await AgentWorld.startServing({ restartPolicy });
    world.onCleanup = () => queueMicrotask(() => world.signal('SIGTERM'));
    await endProcess(world, world.newestProcess(), { code: 1 });
    await world.passTime(60_000);
    expect(world.output()).toBeDefined();
    expect(epochsStarted(world)).toEqual([0]);
  },
);

// The reference counts open connections, and idle ones delay it; this agent counts requests (src/agent/admin/requests-in-flight.ts).
test.each([
  ['19 requests', 19, []],
  ['no requests', 0, ['SIGTERM']],
  ['no statistics', -1, ['SIGTERM']],
] as const)('a stop sends $2 within 10 s to an Envoy with %s (§2.8 S17)', async (_, requestsInFlight, signals) => {
  const world = await AgentWorld.startServing({ exitOnZeroActiveConnections: true });
  world.requestsInFlight = requestsInFlight;
  world.signal('SIGTERM');
  await world.passTime(10_000);
  expect(world.newestProcess().signals).toEqual(signals);
});

test('a child that fails before it attaches is followed by one with the same number (§2.8 S18)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  await endProcess(world, world.newestProcess(), { code: 1, lastOutput: 'cannot bind' });
  await world.certificate('digest-2');
  expect(epochsStarted(world).every((epoch) => epoch <= 1)).toBe(true);
  expect(world.newestProcess().epoch).toBe(1);
});

// The reference drains and restarts; here that is the last resort, after a repair and a second base ID.
test('a parent that rejects its child causes a repair, then use of the spare base ID, then a cold start (§2.8 S19)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  await rejectChild(world);
  expect(world.repairedBaseIds).toEqual([7]);
  await world.passTime(200);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1']);
  await rejectChild(world);
  expect(world.repairedBaseIds).toEqual([7]);
  await world.passTime(400);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0b']);
  expect((await world.requestReadiness()).ready).toBe(true);
  await endProcess(world, world.newestProcess(), { code: 1 });
  expect(world.drainCalls).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
  await world.passTime(4_500);
  await endProcess(world, world.process('epoch-0'), killedEnd);
  expect(world.newestProcess()).toMatchObject({ name: 'epoch-0', baseId: 7 });
  await becomesLive(world);
  expect(world.supervisorTags()).toEqual(['settled']);
});

test('the last of three configurations received during a wait is the only one started (§2.8 S20)', async () => {
  const world = new AgentWorld({ watch: { ...oneDirectory, delayMs: 1_000 } });
  await world.settle();
  for (const digest of ['A', 'B', 'C']) {
    world.changeFiles(digest);
    await world.passTime(1_000);
  }
  await becomesLive(world);
  expect(epochsStarted(world)).toEqual([0, 1]);
  await becomesLive(world);
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.supervisorTags()).toEqual(['settled']);
});

test('a stop during the start of a child kills the child, and drains its parent within 100 ms (§2.8 S21)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  const at = world.clock.now();
  world.signal('SIGTERM');
  await world.settle();
  expect(world.startedProcesses.map((p) => p.signals)).toEqual([[], ['SIGKILL']]);
  expect(world.drainCalls).toHaveLength(1);
  expect(world.clock.now()).toBe(at);
  await endProcess(world, world.process('epoch-1'), killedEnd);
  await world.passTime(5_000);
  await endProcess(world, world.process('epoch-0'));
  expect(world.output()).toEqual(orderedEnd);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('a configuration that could not be started is retried when it is received again (§2.8 S22)', async () => {
  const world = await AgentWorld.startServing(budgetOf(1));
  world.rejectBootstrap = 'tls.crt: no start line';
  await world.certificate('X');
  await world.passTime(200);
  expect(world.supervisorTags()).toEqual(['retries exhausted']);
  world.rejectBootstrap = undefined;
  await world.certificate('X');
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('a clean exit of the current epoch without a stop is followed by another epoch after 200 ms (§2.8 S23)', async () => {
  const world = await AgentWorld.startServing();
  await endProcess(world, world.newestProcess(), { code: 0 });
  await world.passTime(199);
  expect(epochsStarted(world)).toEqual([0]);
  await world.passTime(1);
  expect(epochsStarted(world)).toEqual([0, 0]);
});

test('an Envoy that exits 1 s into the wait of a stop ends the agent immediately (§2.8 S24)', async () => {
  const world = await AgentWorld.startServing();
  world.signal('SIGTERM');
  await world.passTime(1_000);
  await endProcess(world, world.newestProcess(), crashEnd);
  expect(world.output()).toEqual(orderedEnd);
  expect(world.clock.now()).toBe(1_000);
});

// The reference reads a text in the error; this agent reads the kernel's own counter (src/agent/envoy/out-of-memory.ts).
test('an out-of-memory kill by the kernel is named in the report and in the reason of the next start (§2.8 S25)', async () => {
  const world = await AgentWorld.startServing();
  await endProcess(world, world.newestProcess(), { ...killedEnd, outOfMemory: true, lastOutput: 'out of memory' });
  expect(world.events('epoch.failed')).toMatchObject([
    { code: null, signal: 'SIGKILL', outOfMemory: true, reason: 'signal SIGKILL: out of memory' },
  ]);
  await world.passTime(200);
  expect(world.events('restart.decided').at(-1)).toMatchObject({ reason: 'out of memory', how: 'cold start' });
});

test('a second SIGTERM during the drain kills Envoy immediately (§2.8 S26)', async () => {
  const world = await drainingWorld();
  world.signal('SIGTERM');
  await world.passTime(1_000);
  world.signal('SIGTERM');
  await world.settle();
  expect(world.startedProcesses.map((p) => p.signals)).toEqual([['SIGKILL'], ['SIGKILL']]);
  await endProcess(world, world.process('epoch-0'), killedEnd);
  await endProcess(world, world.process('epoch-1'), killedEnd);
  expect(world.output()).toEqual(orderedEnd);
});
