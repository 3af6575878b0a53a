/**
 * The scenarios of spec/agent.md §2.8, by their numbers. A comment at a test states where this agent differs from the reference on
 * purpose; without a comment, both behave the same.
 */
import { expect, test } from 'vitest';
import { AgentWorld, oneDirectory } from '../../simulation/agent-world.ts';
import {
  checkEveryWorld,
  crashed,
  ends,
  epochsStarted,
  goesLive,
  handedOver,
  killed,
  namesAlive,
  namesStarted,
  refuse,
} from './scenes.ts';

checkEveryWorld();

const orderedEnd = { exitCode: 0, trouble: [] };
const budgetOf = (budget: number, firstDelayMs = 200): object => ({
  retry: { budget, firstDelayMs, maxDelayMs: 30_000 },
});

// The reference starts another epoch with a configuration that only drains; this agent drains over the admin interface.
test('§2.8 S1: a stop drains the serving epoch by admin calls, without a drain epoch', async () => {
  const world = await AgentWorld.serving({ terminationDrainMs: 0 });
  world.signal('SIGTERM');
  await world.pass(0);
  expect(world.drained).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
  expect(world.newest().signals).toEqual(['SIGTERM']);
  await ends(world, world.newest());
  expect(world.output()).toEqual(orderedEnd);
  expect(epochsStarted(world)).toEqual([0]);
});

test('§2.8 S2: the same configuration again starts nothing', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-0');
  world.signal('SIGTERM');
  await world.settle();
  await ends(world, world.newest());
  expect(epochsStarted(world)).toEqual([0]);
});

// The reference treats the clean exit of `bad` as a parent's; here a child that exits before it is live has failed.
test('§2.8 S3: a configuration that is restored after an invalid one is still current, and nothing is started', async () => {
  const world = await AgentWorld.serving(budgetOf(0));
  await world.certificate('bad');
  await ends(world, world.newest(), { code: 0 });
  await world.certificate('digest-0');
  await world.pass(3_600_000);
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.cleanedUp).toEqual(['epoch-1']);
  expect(world.supervisorIs()).toEqual(['settled']);
});

// The reference aborts 0 and 1 when 2 fails; here 0 has exited before 2 starts, and 1 keeps serving.
test('§2.8 S4: a third epoch that exits with an error is the only one cleaned up, and no healthy epoch is aborted', async () => {
  const world = await handedOver(budgetOf(10, 10_000));
  await world.pass(60_000);
  await ends(world, world.process('epoch-0'));
  await world.certificate('bad');
  await ends(world, world.process('epoch-2'), { code: 1 });
  expect(world.cleanedUp).toEqual(['epoch-0', 'epoch-2']);
  expect(world.process('epoch-1').signals).toEqual([]);
  await world.pass(9_999);
  expect(namesAlive(world)).toEqual(['epoch-1']);
  await world.pass(1);
  expect(namesAlive(world)).toEqual(['epoch-1', 'epoch-2']);
});

test('§2.8 S5: two failed starts and a successful third one are all epoch 0', async () => {
  const world = new AgentWorld();
  await world.settle();
  await ends(world, world.newest(), { code: 1 });
  await world.pass(200);
  await ends(world, world.newest(), { code: 1 });
  await world.pass(400);
  await goesLive(world);
  expect(epochsStarted(world)).toEqual([0, 0, 0]);
  world.signal('SIGTERM');
  await world.settle();
  await ends(world, world.newest());
  expect(world.output()).toEqual(orderedEnd);
});

test('§2.8 S6: failing starts have doubling delays, and an exhausted budget ends the agent once, with a report', async () => {
  const short = new AgentWorld(budgetOf(1));
  await short.settle();
  await ends(short, short.newest(), { code: 1 });
  await short.pass(200);
  await ends(short, short.newest(), { code: 1 });
  expect(epochsStarted(short)).toEqual([0, 0]);
  expect(short.output()?.exitCode).toBe(1);

  const world = new AgentWorld();
  await world.settle();
  const delays: number[] = [];
  for (let attempt = 0; attempt < 10; attempt++) {
    const failedAt = world.clock.now();
    world.newest().exit({ code: 1, lastWords: `reason ${attempt}` });
    await world.nextStart();
    delays.push(world.clock.now() - failedAt);
  }
  // The reference keeps doubling, to 102.4 s.
  expect(delays).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
  expect(new Set(epochsStarted(world))).toEqual(new Set([0]));
  await ends(world, world.newest(), { code: 1, lastWords: 'reason 10' });
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: [
      'agent exits: Envoy cannot be kept running',
      ...Array.from({ length: 11 }, (_, i) => `epoch-0, initializing: exit code 1: reason ${i}`),
    ],
  });
});

// The reference runs 0, 1 and 2 at a time and stops them through one another; here 0 has exited before 2 is started.
test('§2.8 S7: three configurations in a row have at most two processes of one base ID, and reuse no number', async () => {
  const world = await handedOver();
  await world.certificate('digest-2');
  await world.pass(3_600);
  expect(namesAlive(world)).toEqual(['epoch-0', 'epoch-1']);
  await ends(world, world.process('epoch-0'), { code: 0 });
  await goesLive(world);
  // 0 exited too early, so 1 is orphaned, and 2 would be too: the next one starts beside it under the other base ID.
  expect(namesAlive(world)).toEqual(['epoch-1', 'epoch-0b']);

  const patient = await handedOver();
  for (const [epoch, parent] of [
    [2, 'epoch-0'],
    [3, 'epoch-1'],
  ] as const) {
    await patient.certificate(`digest-${epoch}`);
    expect(patient.alive.size).toBe(2);
    await patient.pass(50_000);
    await ends(patient, patient.process(parent));
    await goesLive(patient);
  }
  expect(patient.cleanedUp).toEqual(['epoch-0', 'epoch-1']);
  expect(epochsStarted(patient)).toEqual([0, 1, 2, 3]);
});

// The reference starts nothing (1.1) or ends (1.6); here a clean exit of the current epoch is a failure, see S23.
test('§2.8 S8: an only Envoy that exits normally at once is followed by epoch 0', async () => {
  const world = new AgentWorld();
  await world.settle();
  await ends(world, world.newest(), { code: 0 });
  await world.pass(200);
  expect(epochsStarted(world)).toEqual([0, 0]);
});

// The reference aborts 0 when 2 crashes; here 0 has exited, and 1 drains until it crashes itself.
test('§2.8 S9: epoch 0 follows crashes of the newest and then the draining epoch, and no healthy epoch is aborted', async () => {
  const world = await handedOver();
  await world.pass(60_000);
  await ends(world, world.process('epoch-0'));
  await world.certificate('digest-2');
  await goesLive(world);
  await ends(world, world.process('epoch-2'), crashed);
  expect(world.process('epoch-1').signals).toEqual([]);
  await world.pass(100);
  await ends(world, world.process('epoch-1'), crashed);
  // Not live, and cannot become live without its parent.
  expect(world.process('epoch-2').signals).toEqual(['SIGKILL']);
  await ends(world, world.process('epoch-2'), killed);
  await world.pass(1_000);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-2', 'epoch-2', 'epoch-0']);
  await goesLive(world);
  expect(world.supervisorIs()).toEqual(['settled']);
});

// The reference aborts 1 when 0 crashes; here 1 serves until its replacement is live.
test('§2.8 S10: a crash of the draining epoch causes a third start within a second, and the serving one is not aborted', async () => {
  const world = await handedOver(budgetOf(10, 1));
  await ends(world, world.process('epoch-0'), crashed);
  await world.pass(1_000);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
  expect(world.process('epoch-1').signals).toEqual([]);
  expect((await world.ask()).ready).toBe(true);
});

// The reference exits without an error; here the exit code is 1, so that the launcher of the agent notices.
test('§2.8 S11: with the policy exit, a first Envoy that exits at once ends the agent', async () => {
  const world = new AgentWorld({ restartPolicy: 'exit' });
  await world.settle();
  await ends(world, world.newest(), { code: 0 });
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: ['agent exits: Envoy cannot be kept running', 'epoch-0, initializing: exit code 0'],
  });
  expect(epochsStarted(world)).toEqual([0]);
});

// The reference kills after the drain; this agent sends SIGTERM first, and waits for the exit.
test('§2.8 S12: a stop drains once, waits, then ends Envoy by SIGTERM; nothing is started', async () => {
  const world = await AgentWorld.serving();
  world.signal('SIGTERM');
  await world.settle();
  expect((await world.ask()).ready).toBe(false);
  await world.pass(4_999);
  expect(world.newest().signals).toEqual([]);
  await world.pass(1);
  expect(world.newest().signals).toEqual(['SIGTERM']);
  expect(world.output()).toBeUndefined();
  await ends(world, world.newest());
  expect(world.output()).toEqual(orderedEnd);
  expect(world.drained).toHaveLength(1);
  expect(epochsStarted(world)).toEqual([0]);
});

test('§2.8 S13: a restart requested right after the start waits until epoch 0 is live', async () => {
  const world = new AgentWorld();
  await world.settle();
  world.signal('SIGHUP');
  await world.pass(2_000);
  expect(epochsStarted(world)).toEqual([0]);
  await goesLive(world);
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.clock.now()).toBe(2_000);
});

// The reference starts epoch 1, which would look for a missing parent and abort; this agent starts epoch 0.
test('§2.8 S14: epoch 0 that exits before it is live is followed by epoch 0 within a second, not by epoch 1', async () => {
  const world = new AgentWorld();
  await world.settle();
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0]);
  await ends(world, world.newest(), { code: 1 });
  await world.pass(1_000);
  expect(epochsStarted(world)).toEqual([0, 0]);
  await goesLive(world);
  expect(world.supervisorIs()).toEqual(['settled']);
});

// The reference's agent always exits with Envoy; this one with the policy exit, and by an exit code other than 0 unless Envoy's
// was 0.
test('§2.8 S15: with the policy exit and hot restart off, the agent ends with Envoy and reports how Envoy ended', async () => {
  const world = await AgentWorld.serving({ restartPolicy: 'exit', hotRestart: false });
  await ends(world, world.newest(), { code: 4 });
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: ['agent exits: Envoy cannot be kept running', 'epoch-0, serving: exit code 4'],
  });
  expect(epochsStarted(world)).toEqual([0]);
});

test.each(['retry', 'exit'] as const)(
  '§2.8 S16: a stop at the moment of a clean-up ends the agent (policy %s)',
  async (restartPolicy) => {
    const world = await AgentWorld.serving({ restartPolicy });
    world.onCleanup = () => queueMicrotask(() => world.signal('SIGTERM'));
    await ends(world, world.newest(), { code: 1 });
    await world.pass(60_000);
    expect(world.output()).toBeDefined();
    expect(epochsStarted(world)).toEqual([0]);
  },
);

// The reference counts open connections, and idle ones delay it; this agent counts requests (src/agent/admin/requests-in-flight.ts).
test.each([
  ['19 requests', 19, []],
  ['none', 0, ['SIGTERM']],
  ['no statistics', -1, ['SIGTERM']],
] as const)(
  '§2.8 S17: active requests decide when a stop terminates Envoy: %s',
  async (_, requestsInFlight, signals) => {
    const world = await AgentWorld.serving({ exitOnZeroActiveConnections: true });
    world.requestsInFlight = requestsInFlight;
    world.signal('SIGTERM');
    await world.pass(10_000);
    expect(world.newest().signals).toEqual(signals);
  },
);

test('§2.8 S18: a child that fails before it attached is followed by one with the same number', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  await ends(world, world.newest(), { code: 1, lastWords: 'cannot bind' });
  await world.certificate('digest-2');
  expect(epochsStarted(world).every((epoch) => epoch <= 1)).toBe(true);
  expect(world.newest().epoch).toBe(1);
});

// The reference drains and restarts; here that is the last resort, after a repair and a second base ID beside the first.
test('§2.8 S19: a parent that rejects its child leads to a repair, then the spare base ID, then a cold start', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  await refuse(world);
  expect(world.repaired).toEqual([7]);
  await world.pass(200);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1']);
  await refuse(world);
  expect(world.repaired).toEqual([7]);
  await world.pass(400);
  expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0b']);
  expect((await world.ask()).ready).toBe(true);
  await ends(world, world.newest(), { code: 1 });
  expect(world.drained).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
  await world.pass(4_500);
  await ends(world, world.process('epoch-0'), killed);
  expect(world.newest()).toMatchObject({ name: 'epoch-0', baseId: 7 });
  await goesLive(world);
  expect(world.supervisorIs()).toEqual(['settled']);
});

test('§2.8 S20: of three configurations that arrive during a wait only the last is started', async () => {
  const world = new AgentWorld({ watch: { ...oneDirectory, delayMs: 1_000 } });
  await world.settle();
  for (const digest of ['A', 'B', 'C']) {
    world.changeFiles(digest);
    await world.pass(1_000);
  }
  await goesLive(world);
  expect(epochsStarted(world)).toEqual([0, 1]);
  await goesLive(world);
  await world.pass(60_000);
  await ends(world, world.process('epoch-0'));
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.supervisorIs()).toEqual(['settled']);
});

test('§2.8 S21: a stop during the start of a child kills the child and drains its parent within 100 ms', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  const at = world.clock.now();
  world.signal('SIGTERM');
  await world.settle();
  expect(world.started.map((p) => p.signals)).toEqual([[], ['SIGKILL']]);
  expect(world.drained).toHaveLength(1);
  expect(world.clock.now()).toBe(at);
  await ends(world, world.process('epoch-1'), killed);
  await world.pass(5_000);
  await ends(world, world.process('epoch-0'));
  expect(world.output()).toEqual(orderedEnd);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('§2.8 S22: a configuration that could not be started is retried when it is received again', async () => {
  const world = await AgentWorld.serving(budgetOf(1));
  world.rejectBootstrap = 'tls.crt: no start line';
  await world.certificate('X');
  await world.pass(200);
  expect(world.supervisorIs()).toEqual(['retries exhausted']);
  world.rejectBootstrap = undefined;
  await world.certificate('X');
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('§2.8 S23: a clean exit of the current epoch without a stop is followed by another one after 200 ms', async () => {
  const world = await AgentWorld.serving();
  await ends(world, world.newest(), { code: 0 });
  await world.pass(199);
  expect(epochsStarted(world)).toEqual([0]);
  await world.pass(1);
  expect(epochsStarted(world)).toEqual([0, 0]);
});

test('§2.8 S24: an Envoy that exits one second into the wait of a stop ends the agent at once', async () => {
  const world = await AgentWorld.serving();
  world.signal('SIGTERM');
  await world.pass(1_000);
  await ends(world, world.newest(), crashed);
  expect(world.output()).toEqual(orderedEnd);
  expect(world.clock.now()).toBe(1_000);
});

// The reference reads a text in the error; this agent reads the kernel's own counter (src/agent/envoy/out-of-memory.ts).
test('§2.8 S25: the report and the next start name the cause when the kernel killed an Envoy because it was out of memory', async () => {
  const world = await AgentWorld.serving();
  await ends(world, world.newest(), { ...killed, outOfMemory: true, lastWords: 'out of memory' });
  expect(world.events('epoch.failed')).toMatchObject([
    { code: null, signal: 'SIGKILL', outOfMemory: true, reason: 'signal SIGKILL: out of memory' },
  ]);
  await world.pass(200);
  expect(world.events('restart.decided').at(-1)).toMatchObject({ reason: 'out of memory', how: 'cold start' });
});

test('§2.8 S26: a second SIGTERM during the drain kills at once', async () => {
  const world = await handedOver();
  world.signal('SIGTERM');
  await world.pass(1_000);
  world.signal('SIGTERM');
  await world.settle();
  expect(world.started.map((p) => p.signals)).toEqual([['SIGKILL'], ['SIGKILL']]);
  await ends(world, world.process('epoch-0'), killed);
  await ends(world, world.process('epoch-1'), killed);
  expect(world.output()).toEqual(orderedEnd);
});
