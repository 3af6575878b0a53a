/**
 * The agent's statecharts as a whole, under virtual time. Scenario numbers are those of spec/agent.md §2.8; a rule of
 * Envoy's that a test guards is named by its fact in spec/envoy-hot-restart.md §0.
 */
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { defaultSettings } from '../../machines/agent/settings.ts';
import { checkTrace } from '../../src/debugger/check.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { formatReport } from '../../src/debugger/report-text.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { AgentWorld } from '../simulation/agent-world.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences'));

/** Whatever a test did: its trace conforms to the diagrams, and no chart failed. */
afterEach(() => {
  for (const world of AgentWorld.made.splice(0)) {
    expect(world.failed).toBeUndefined();
    const report = checkTrace(diagrams, world.records);
    expect(report.departures.length, formatReport(report, diagrams)).toBe(0);
  }
});

const epochsStarted = (world: AgentWorld): number[] => world.started.map((p) => p.epoch);

/** A world with epoch 1 live and epoch 0 draining. */
async function handedOver(): Promise<AgentWorld> {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  world.newest().live();
  await world.settle();
  return world;
}

describe('start', () => {
  test('the watcher starts Envoy at once, whatever the files are', async () => {
    const world = new AgentWorld();
    await world.settle();
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.clock.now()).toBe(0);
    expect(world.prepared).toEqual([{ epoch: 0, validate: true }]);
  });

  test('an Envoy that waits for the control plane while nobody serves is left waiting', async () => {
    const world = new AgentWorld();
    await world.pass(3_600_000);
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.newest().signals).toEqual([]);
    expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy has not been started' });
  });

  test('a refused bootstrap is tried again, and never becomes a process', async () => {
    const world = new AgentWorld();
    world.rejectBootstrap = 'envoy-rev0.json: no such field: bogus';
    await world.settle();
    expect(world.supervisorState()).toBe('running.backing off');
    world.rejectBootstrap = undefined;
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0]);
  });
});

describe('hot restart', () => {
  test('a changed certificate starts the next epoch; the old one drains only when the new one is live', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    expect(epochsStarted(world)).toEqual([0, 1]);
    expect(world.prepared.at(-1)).toEqual({ epoch: 1, validate: true });
    expect(world.messages()).not.toContain('supervisor → epoch-0: epoch.supersede');
    world.newest().live();
    await world.settle();
    expect(world.messages()).toContain('supervisor → epoch-0: epoch.supersede');
    expect(world.started[0]!.signals).toEqual([]);
  });

  test('S2: the same certificate again starts nothing', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-0');
    expect(epochsStarted(world)).toEqual([0]);
  });

  test.each([
    ['broken', ['tls.key is not the key of tls.crt'], ['tls.crt', 'tls.key'], 'tls.key is not the key of tls.crt'],
    ['away', [], [], 'every certificate file is gone'],
  ])('certificates that are %s change nothing, and are told; good ones do', async (_, problems, files, reason) => {
    const world = await AgentWorld.serving();
    world.fileProblems = problems;
    world.files = files;
    await world.certificate('digest-1');
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.records).toContainEqual(
      expect.objectContaining({ to: 'supervisor', event: { type: 'config.rejected', reason } }),
    );
    world.fileProblems = [];
    world.files = ['tls.crt'];
    await world.certificate('digest-2');
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('fact 5: a change while a parent drains waits until it has left, and the newest change wins', async () => {
    const world = await handedOver();
    await world.certificate('digest-2');
    await world.certificate('digest-3');
    expect(epochsStarted(world)).toEqual([0, 1]);
    expect(world.supervisorState()).toBe('running.waiting for the parent to leave');
    await world.pass(40_000);
    world.started[0]!.exit();
    await world.settle();
    expect(epochsStarted(world)).toEqual([0, 1, 2]);
    world.newest().live();
    await world.pass(60_000);
    world.started[1]!.exit();
    await world.settle();
    expect(epochsStarted(world)).toEqual([0, 1, 2]);
    expect(world.supervisorState()).toBe('running.settled');
  });

  test('S20: changes that arrive while a child is starting are coalesced into one restart', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await world.certificate('digest-2');
    world.changeFiles('digest-3');
    expect(epochsStarted(world)).toEqual([0, 1]);
    world.newest().live();
    await world.pass(10_000);
    world.started[0]!.exit();
    await world.settle();
    // The parent left before its time: the child is doomed, and a full restart follows (fact 4).
    expect(world.supervisorState()).toBe('running.recycling.draining');
  });

  test('SIGHUP restarts Envoy although nothing changed', async () => {
    const world = await AgentWorld.serving();
    world.signal('SIGHUP');
    await world.settle();
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('SIGUSR1 reaches every epoch', async () => {
    const world = await handedOver();
    world.signal('SIGUSR1');
    expect(world.started.map((p) => p.signals)).toEqual([['SIGUSR1'], ['SIGUSR1']]);
  });

  test('a parent that outstays its time and grace is killed, and only then', async () => {
    const world = await handedOver();
    await world.pass(64_900);
    expect(world.started[0]!.signals).toEqual([]);
    await world.pass(200);
    expect(world.started[0]!.signals).toEqual(['SIGKILL']);
    world.started[0]!.exit({ code: null, signal: 'SIGKILL' });
    await world.settle();
    expect(world.supervisorState()).toBe('running.settled');
  });

  test('the proxy stays ready during the hand-over, though the admin port speaks for the child', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    world.envoyLive = false;
    expect(await world.ask()).toEqual({ ready: true, reason: '' });
    world.newest().live();
    await world.settle();
    expect(await world.ask()).toEqual({ ready: false, reason: "Envoy's admin interface says: 503" });
  });
});

describe('failure', () => {
  test('a child that fails leaves its parent serving, and the same number is tried again (F1, F4)', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    world.newest().exit({ code: 1, lastWords: 'cannot bind' });
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.started[0]!.signals).toEqual([]);
    expect((await world.ask()).ready).toBe(true);
  });

  test('fact 3: a child that is not live within 20 s is killed, never asked to end', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await world.pass(19_900);
    expect(world.newest().signals).toEqual([]);
    await world.pass(200);
    expect(world.newest().signals).toEqual(['SIGKILL']);
    world.newest().exit({ code: null, signal: 'SIGKILL' });
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
  });

  /** A child that Envoy refuses because of the mark that an earlier one left. */
  const refuse = async (world: AgentWorld): Promise<void> => {
    world.newest().exit({ code: 1, lastWords: 'previous envoy process is still initializing', refusedByParent: true });
    await world.settle();
  };

  test('S19, F2: a child that its parent refuses: shared memory is repaired, and the same number is tried again', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await refuse(world);
    expect(world.repairs).toBe(1);
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.started[0]!.signals).toEqual([]);
    expect((await world.ask()).ready).toBe(true);
  });

  test.each([
    ['where it cannot be repaired', 'another version'],
    ['where the repair did not help', undefined],
  ])('S19: a child that its parent refuses, %s: a full, drained restart from epoch 0', async (_, repairAnswer) => {
    const world = await AgentWorld.serving();
    world.repairAnswer = repairAnswer;
    await world.certificate('digest-1');
    await refuse(world);
    if (repairAnswer === undefined) {
      await world.pass(200);
      await refuse(world);
    }
    expect(world.supervisorState()).toBe('running.recycling.draining');
    expect(world.messages()).toContain('supervisor → epoch-0: epoch.drain');
    expect(world.started[0]!.signals).toEqual([]);
    await world.pass(4_500);
    expect(world.started[0]!.signals).toEqual(['SIGKILL']);
    world.started[0]!.exit({ code: null, signal: 'SIGKILL' });
    await world.settle();
    expect(world.newest().epoch).toBe(0);
  });

  test('the only Envoy crashes: epoch 0 again, after the first delay, unchecked because it is known to be good', async () => {
    const world = await AgentWorld.serving();
    world.newest().exit({ code: null, signal: 'SIGKILL' });
    await world.settle();
    expect((await world.ask()).ready).toBe(false);
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 0]);
    expect(world.prepared.at(-1)).toEqual({ epoch: 0, validate: false });
  });

  test('S23: a clean exit of the current epoch without a stop is a failure', async () => {
    const world = await AgentWorld.serving();
    world.newest().exit({ code: 0 });
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 0]);
  });

  test('a crash while the parent drains starts the same number again, and the parent gets its full time', async () => {
    const world = await handedOver();
    await world.pass(30_000);
    world.newest().exit({ code: null, signal: 'SIGSEGV' });
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    world.newest().live();
    await world.pass(60_000);
    expect(world.started[0]!.signals).toEqual([]);
    world.started[0]!.exit();
    await world.settle();
    expect(world.supervisorState()).toBe('running.settled');
  });

  test('the parent dies while its child is starting: the child is killed and epoch 0 follows', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    world.started[0]!.exit({ code: null, signal: 'SIGKILL' });
    await world.settle();
    expect(world.started[1]!.signals).toEqual(['SIGKILL']);
    world.started[1]!.exit({ code: null, signal: 'SIGKILL' });
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 0]);
  });

  test('S5, S6: every start fails: the delays double up to 30 s, and an exhausted budget ends the agent with a report', async () => {
    const world = new AgentWorld();
    await world.settle();
    const delays: number[] = [];
    for (let attempt = 0; attempt < 10; attempt++) {
      const failedAt = world.clock.now();
      world.newest().exit({ code: 1, lastWords: `reason ${attempt}` });
      await world.nextStart();
      delays.push(world.clock.now() - failedAt);
    }
    expect(delays).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    expect(new Set(epochsStarted(world))).toEqual(new Set([0]));
    world.newest().exit({ code: 1, lastWords: 'reason 10' });
    await world.settle();
    expect(world.output()?.exitCode).toBe(1);
    expect(world.output()?.trouble).toHaveLength(12);
    expect(world.output()?.trouble.at(-1)).toBe('epoch 0, initializing: exit code 1: reason 10');
  });

  test('a new certificate renews the budget and cuts the delay short; so does a minute of health', async () => {
    const world = new AgentWorld({ retry: { budget: 3, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.settle();
    for (const digest of ['a', 'b', 'c']) {
      world.newest().exit({ code: 1 });
      await world.pass(200);
      world.newest().exit({ code: 1 });
      await world.certificate(digest);
    }
    expect(world.output()).toBeUndefined();
    for (let crash = 0; crash < 12; crash++) {
      world.newest().live();
      await world.pass(60_000);
      world.newest().exit({ code: 1 });
      await world.pass(200);
    }
    expect(world.output()).toBeUndefined();
  });

  test('an exhausted budget beside a serving epoch ends nothing: S22, the same configuration can be tried again', async () => {
    const world = await AgentWorld.serving({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
    world.rejectBootstrap = 'tls.crt: no start line';
    await world.certificate('broken');
    await world.pass(200);
    expect(world.supervisorState()).toBe('running.given up on the configuration');
    expect((await world.ask()).ready).toBe(true);
    world.rejectBootstrap = undefined;
    await world.certificate('broken');
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('S8, S11, S15: with the policy exit the agent ends with Envoy, and says how that ended', async () => {
    const world = await AgentWorld.serving({ restartPolicy: 'exit' });
    world.newest().exit({ code: 0 });
    await world.settle();
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.output()).toEqual({
      exitCode: 1,
      trouble: ['Envoy could not be kept running', 'epoch 0, serving: exit code 0'],
    });
  });

  test('with the policy exit a failed child does not end an agent whose Envoy serves', async () => {
    const world = await AgentWorld.serving({ restartPolicy: 'exit' });
    await world.certificate('digest-1');
    world.newest().exit({ code: 1 });
    await world.settle();
    expect(world.output()).toBeUndefined();
    expect((await world.ask()).ready).toBe(true);
  });

  test('with hot restart off a change drains Envoy, ends it, and starts it anew as epoch 0', async () => {
    const world = await AgentWorld.serving({ hotRestart: false });
    await world.certificate('digest-1');
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.messages()).toContain('supervisor → epoch-0: epoch.drain');
    await world.pass(4_500);
    world.newest().exit({ code: null, signal: 'SIGKILL' });
    await world.settle();
    expect(epochsStarted(world)).toEqual([0, 0]);
    world.newest().live();
    await world.settle();
    expect(world.supervisorState()).toBe('running.settled');
  });

  test('starts are paced: ten at once, then one a second', async () => {
    const world = await AgentWorld.serving({ retry: { budget: 1_000, firstDelayMs: 1, maxDelayMs: 1 } });
    const from = world.started.length;
    for (let crash = 0; crash < 15; crash++) {
      world.newest().exit({ code: 1 });
      await world.nextStart();
    }
    expect(world.started.length - from).toBe(15);
    expect(world.clock.now()).toBeGreaterThanOrEqual(6_000);
    expect(world.clock.now()).toBeLessThan(8_000);
  });
});

describe('stop', () => {
  test('S1, S12: the serving epoch is drained by admin calls, then ended by SIGTERM; the agent waits for its exit', async () => {
    const world = await AgentWorld.serving();
    world.signal('SIGTERM');
    await world.settle();
    expect(world.messages()).toContain('supervisor → epoch-0: epoch.drain');
    expect((await world.ask()).ready).toBe(false);
    await world.pass(4_999);
    expect(world.newest().signals).toEqual([]);
    await world.pass(1);
    expect(world.newest().signals).toEqual(['SIGTERM']);
    expect(world.output()).toBeUndefined();
    world.newest().exit();
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
    expect(epochsStarted(world)).toEqual([0]);
  });

  test('fact 6: with a parent still draining, only the newest epoch is signalled', async () => {
    const world = await handedOver();
    world.signal('SIGINT');
    await world.pass(5_000);
    expect(world.started.map((p) => p.signals)).toEqual([[], ['SIGTERM']]);
    world.started[1]!.exit();
    world.started[0]!.exit();
    await world.settle();
    expect(world.output()?.exitCode).toBe(0);
  });

  test('S21: a stop while a child is starting kills the child at once and drains its parent', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    world.signal('SIGTERM');
    await world.settle();
    expect(world.started.map((p) => p.signals)).toEqual([[], ['SIGKILL']]);
    expect(world.messages()).toContain('supervisor → epoch-0: epoch.drain');
    world.started[1]!.exit({ code: null, signal: 'SIGKILL' });
    await world.pass(5_000);
    world.started[0]!.exit();
    await world.settle();
    expect(world.output()?.exitCode).toBe(0);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('a stop while the first epoch is being prepared calls its start off', async () => {
    const world = new AgentWorld();
    // The base id is claimed and the watcher has read the files: the bootstrap is being made.
    const preparing = (): boolean => world.records.some((r) => r.kind === 'spawn' && r.actor === 'epoch-0/prepare');
    for (let turn = 0; turn < 100 && !preparing(); turn++) await Promise.resolve();
    expect(preparing()).toBe(true);
    world.signal('SIGTERM');
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
    expect(world.started).toEqual([]);
  });

  test('S24: the wait ends when Envoy ends', async () => {
    const world = await AgentWorld.serving();
    world.signal('SIGTERM');
    await world.pass(1_000);
    world.newest().exit({ code: null, signal: 'SIGSEGV' });
    await world.settle();
    expect(world.output()?.exitCode).toBe(0);
  });

  test('S26: a second signal kills at once', async () => {
    const world = await handedOver();
    world.signal('SIGTERM');
    await world.settle();
    world.signal('SIGTERM');
    await world.settle();
    expect(world.started.map((p) => p.signals)).toEqual([['SIGKILL'], ['SIGKILL']]);
  });

  test('a stop when only a draining parent is left lets its requests finish, then ends it', async () => {
    const world = await handedOver();
    world.newest().exit({ code: null, signal: 'SIGSEGV' });
    await world.settle();
    world.signal('SIGTERM');
    await world.pass(4_999);
    expect(world.started[0]!.signals).toEqual([]);
    await world.pass(1);
    expect(world.started[0]!.signals).toEqual(['SIGTERM']);
  });

  test('an Envoy that ignores SIGTERM is killed after the stop limit', async () => {
    const world = await AgentWorld.serving();
    world.signal('SIGTERM');
    await world.pass(5_000 + defaultSettings.stopLimitMs);
    expect(world.newest().signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  test('a stop before anything was started, and during every delay, ends the agent without a new start', async () => {
    const early = new AgentWorld();
    early.signal('SIGTERM');
    await early.settle();
    expect(early.output()?.exitCode).toBe(0);
    expect(early.started).toEqual([]);

    const backingOff = await AgentWorld.serving();
    backingOff.newest().exit({ code: 1 });
    await backingOff.settle();
    backingOff.signal('SIGTERM');
    await backingOff.settle();
    expect(backingOff.output()?.exitCode).toBe(0);
    expect(epochsStarted(backingOff)).toEqual([0]);
  });
});
