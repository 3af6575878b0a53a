/**
 * The faults of Istio's agent, by their numbers (F1 to F13): each test fails when the code that prevents the fault is
 * removed (docs/mutation-testing.md).
 */
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { liveProbe } from '../../../src/agent/admin/live-probe.ts';
import { XdsActivity } from '../../../src/agent/xds/xds-activity.ts';
import { adminAt } from '../../fixtures/real-envoy.ts';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  epochsStarted,
  killedEnd,
  namesStarted,
  rejectChild,
} from './scenes.ts';

checkEveryWorld();

const orderedEnd = { exitCode: 0, trouble: [] };

test('an epoch that failed does not count, and the next epoch number follows the serving one (§2.6 F1)', async () => {
  const world = await AgentWorld.startServing();
  for (const digest of ['digest-1', 'digest-2', 'digest-3']) {
    await world.certificate(digest);
    await endProcess(world, world.newestProcess(), { code: 1 });
  }
  await world.passTime(1_000);
  expect(new Set(epochsStarted(world))).toEqual(new Set([0, 1]));
});

test('a new bootstrap is checked before any child attaches, even if it is proven (§2.6 F2)', async () => {
  const world = await AgentWorld.startServing();
  world.signal('SIGHUP');
  await world.certificate('digest-1');
  expect(world.preparedEpochs.slice(1)).toEqual([{ epoch: 1, baseId: 7, validate: true }]);
  world.rejectBootstrap = 'no such field';
  const refusedWorld = await AgentWorld.startServing();
  refusedWorld.rejectBootstrap = 'no such field';
  await refusedWorld.certificate('digest-1');
  expect(namesStarted(refusedWorld)).toEqual(['epoch-0']);
});

test('a parent that rejects every child is repaired or replaced, and does not get children forever (§2.6 F2)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  await rejectChild(world);
  await world.passTime(200);
  await rejectChild(world);
  await world.passTime(400);
  expect(world.repairedBaseIds).toEqual([7]);
  expect(world.newestProcess().baseId).toBe(8);
  await becomesLive(world);
  expect(world.supervisorTags()).toEqual(['settled']);
});

test('epoch numbers have no gaps after failures, and a child that is not live within 20 s is killed and reported (§2.6 F3)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  await world.passTime(20_000);
  expect(world.newestProcess().signals).toEqual(['SIGKILL']);
  await endProcess(world, world.newestProcess(), killedEnd);
  expect(world.events('restart.ended').at(-1)).toMatchObject({ name: 'epoch-1', outcome: 'not live in time' });
  await world.passTime(200);
  await becomesLive(world);
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  await world.certificate('digest-2');
  expect(epochsStarted(world)).toEqual([0, 1, 1, 2]);
});

test('an epoch that waits for the control plane keeps waiting if no Envoy serves (§2.6 F3)', async () => {
  const world = new AgentWorld();
  await world.passTime(3_600_000);
  expect(world.newestProcess().signals).toEqual([]);
  expect(epochsStarted(world)).toEqual([0]);
});

test('a failed child does not affect the serving epoch, which receives no order or signal (§2.6 F4)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  const messagesBefore = world.messages().length;
  await endProcess(world, world.newestProcess(), { code: 1 });
  expect(
    world
      .messages()
      .slice(messagesBefore)
      .filter((message) => message.startsWith('supervisor → epoch-0')),
  ).toEqual([]);
  expect(world.process('epoch-0').signals).toEqual([]);
  expect(world.supervisorTags()).toEqual(['backing off']);
  expect(await world.requestReadiness()).toEqual({ ready: true, reason: '' });
});

test('changes and stops are accepted at any time: the newest change is started, and a stop is executed (§2.6 F5)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  await world.certificate('digest-2');
  await becomesLive(world);
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  expect(epochsStarted(world)).toEqual([0, 1, 2]);
  await becomesLive(world);
  await world.certificate('digest-3');
  expect(world.supervisorTags()).toEqual(['waiting for parent exit']);
  world.signal('SIGTERM');
  await world.settle();
  expect(world.drainCalls).toEqual([{ epoch: 2, baseId: 7, replaced: false }]);
});

test('a child without a process at the time of a stop never starts one (§2.6 F6)', async () => {
  const world = await AgentWorld.startServing();
  world.changeFiles('digest-1');
  const preparing = (): boolean => world.records.some((r) => r.kind === 'spawn' && r.actor === 'epoch-1/prepare');
  world.clock.advance(10_000);
  for (let tick = 0; tick < 100 && !preparing(); tick++) await Promise.resolve();
  world.signal('SIGTERM');
  await world.passTime(5_000);
  await endProcess(world, world.newestProcess());
  expect(namesStarted(world)).toEqual(['epoch-0']);
  expect(world.output()).toEqual(orderedEnd);
});

test('a stop ends when all Envoys have exited, at most 10 s after SIGKILL (§2.6 F7)', async () => {
  const world = await drainingWorld();
  world.signal('SIGTERM');
  await world.passTime(5_000);
  await endProcess(world, world.process('epoch-1'));
  await world.passTime(1_000);
  expect(world.output()).toBeUndefined();
  await world.passTime(11_000);
  expect(world.process('epoch-0').signals).toEqual(['SIGKILL']);
  await world.passTime(9_999);
  expect(world.output()).toBeUndefined();
  await world.passTime(1);
  expect(world.output()).toEqual(orderedEnd);
});

test('a failed start is retried with increasing delays, because desired and running state are compared (§2.6 F8)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  const delays: number[] = [];
  for (let attempt = 0; attempt < 3; attempt++) {
    const failedAt = world.clock.now();
    world.newestProcess().exit({ code: 1 });
    await world.nextStart();
    delays.push(world.clock.now() - failedAt);
  }
  expect(delays).toEqual([200, 400, 800]);
  expect(epochsStarted(world)).toEqual([0, 1, 1, 1, 1]);
});

test('a healthy minute resets the retry budget (§2.6 F8)', async () => {
  const world = await AgentWorld.startServing({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
  for (let crash = 0; crash < 5; crash++) {
    await world.passTime(60_000);
    await endProcess(world, world.newestProcess(), crashEnd);
    await world.passTime(200);
    await becomesLive(world);
  }
  expect(world.supervisorTags()).toEqual(['settled']);
});

test('a clean exit of the current epoch counts as a failure (§2.6 F9)', async () => {
  const world = await AgentWorld.startServing({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
  await endProcess(world, world.newestProcess(), { code: 0 });
  expect(world.output()?.exitCode).toBe(1);
});

test('a stop ends its wait when all Envoys have exited, or at a second signal (§2.6 F10)', async () => {
  const exitedWorld = await AgentWorld.startServing();
  exitedWorld.signal('SIGTERM');
  await exitedWorld.passTime(1_000);
  await endProcess(exitedWorld, exitedWorld.newestProcess());
  expect(exitedWorld.output()).toEqual(orderedEnd);

  const signalled = await AgentWorld.startServing();
  signalled.signal('SIGTERM');
  await signalled.passTime(1_000);
  signalled.signal('SIGINT');
  await endProcess(signalled, signalled.newestProcess(), killedEnd);
  expect(signalled.newestProcess().signals).toEqual(['SIGKILL']);
  expect(signalled.clock.now()).toBe(1_000);
});

test('a stop sends SIGTERM to the newest live epoch, SIGKILL after a deadline, and only SIGKILL to others (§2.6 F11)', async () => {
  const world = await drainingWorld();
  world.signal('SIGTERM');
  await world.passTime(16_999);
  expect(world.startedProcesses.map((p) => p.signals)).toEqual([[], ['SIGTERM']]);
  await world.passTime(1);
  expect(world.startedProcesses.map((p) => p.signals)).toEqual([['SIGKILL'], ['SIGTERM', 'SIGKILL']]);

  const starting = await AgentWorld.startServing();
  await starting.certificate('digest-1');
  starting.signal('SIGTERM');
  await starting.passTime(5_000);
  expect(starting.startedProcesses.map((p) => p.signals)).toEqual([['SIGTERM'], ['SIGKILL']]);
});

// See src/agent/envoy/out-of-memory.test.ts and src/agent/envoy/envoy-process.test.ts for the kernel query.
test("an out-of-memory kill is recognized by the kernel's report, not by a text or a SIGKILL (§2.6 F12)", async () => {
  const reasons: unknown[] = [];
  for (const end of [
    { ...killedEnd, outOfMemory: true, lastOutput: '' },
    { ...killedEnd, outOfMemory: false, lastOutput: 'signal: killed' },
  ]) {
    const world = await AgentWorld.startServing();
    await endProcess(world, world.newestProcess(), end);
    await world.passTime(200);
    reasons.push(world.events('restart.decided').at(-1)?.reason);
  }
  expect(reasons).toEqual(['out of memory', 'Envoy crashed']);
});

test('a response of another epoch on the admin port does not make an epoch live (§2.6 F13)', async () => {
  const admin = { epoch: 0 };
  const server = createServer((request, response) => {
    if (request.url === '/ready') response.end('LIVE\n');
    else response.end(JSON.stringify({ command_line_options: { restart_epoch: admin.epoch } }));
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const reports = new EventEmitter();
  const probe = liveProbe({
    adminAt,
    discoveryAddress: undefined,
    xds: new XdsActivity(),
  });
  const probing = setup({ actors: { probe } }).createMachine({
    invoke: {
      id: 'probe',
      src: 'probe',
      input: { epoch: 1, baseId: 1, adminPort: port, listeners: false, isProbeRequested: false, startedAtMs: 0 },
    },
    on: { '*': { actions: ({ event }) => void reports.emit(event.type) } },
  });
  const actor = createActor(probing).start();
  onTestFinished(() => void actor.stop());
  const live = once(reports, 'probe.passed').then(() => true);
  // Waits for several responses.
  await sleep(100);
  actor.getSnapshot().children.probe?.send({ type: 'probe.explain' });
  expect(await Promise.race([live, once(reports, 'probe.waiting').then(() => false)])).toBe(false);
  admin.epoch = 1;
  expect(await live).toBe(true);
});
