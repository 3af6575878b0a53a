import { describe, expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  epochsStarted,
  killedEnd,
} from './scenes.ts';

checkEveryWorld();

test('a changed certificate starts the next epoch, and the old epoch drains only when the new one is live (§2.1, §2.3)', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.preparedEpochs.at(-1)).toEqual({ epoch: 1, baseId: 7, validate: true });
  expect(world.messages()).not.toContain('supervisor → epoch-0: epoch.supersede');
  await becomesLive(world);
  expect(world.messages()).toContain('supervisor → epoch-0: epoch.supersede');
  expect(world.process('epoch-0').signals).toEqual([]);
});

test.each([
  ['mismatched', ['tls.key is not the key of tls.crt'], ['tls.crt', 'tls.key'], 'tls.key is not the key of tls.crt'],
  ['removed', [], [], 'all certificate files were removed'],
])(
  'certificates that are %s cause no restart and are reported, and valid ones restart Envoy',
  async (_, problems, files, reason) => {
    const world = await AgentWorld.startServing();
    world.fileProblems = problems;
    world.files = files;
    await world.certificate('digest-1');
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.events('config.rejected')).toEqual([{ type: 'config.rejected', reason }]);
    world.fileProblems = [];
    world.files = ['tls.crt'];
    await world.certificate('digest-2');
    expect(epochsStarted(world)).toEqual([0, 1]);
  },
);

describe('the slot for pending changes', () => {
  test('keeps a change while a parent drains, and the newest change replaces it (fact 5)', async () => {
    const world = await drainingWorld();
    await world.certificate('digest-2');
    await world.certificate('digest-3');
    expect(epochsStarted(world)).toEqual([0, 1]);
    expect(world.supervisorTags()).toEqual(['waiting for parent exit']);
    await world.passTime(40_000);
    await endProcess(world, world.process('epoch-0'));
    expect(epochsStarted(world)).toEqual([0, 1, 2]);
    await becomesLive(world);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-1'));
    expect(epochsStarted(world)).toEqual([0, 1, 2]);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('starts no Envoy for a change that is reverted while a parent drains', async () => {
    const world = await drainingWorld();
    await world.certificate('digest-2');
    await world.certificate('digest-1');
    expect(world.supervisorTags()).toEqual(['settled']);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('keeps a change during the start of a child for the next start', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await world.certificate('digest-2');
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['waiting for parent exit']);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(epochsStarted(world)).toEqual([0, 1, 2]);
  });
});

describe('a child that was live before a probe detects it', () => {
  test('counts as having served if it is killed: its parent drains, and the next child starts immediately and unchecked', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-1'), { ...killedEnd, tookOverWithinMs: 180 });
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.preparedEpochs.at(-1)).toEqual({ epoch: 1, baseId: 7, validate: false });
    expect(world.events('epoch.live').at(-1)).toMatchObject({ name: 'epoch-1', timeToLiveMs: 180 });
    expect(world.events('epoch.failed')).toMatchObject([{ name: 'epoch-1', during: 'serving' }]);
    expect(world.messages()).toContain('supervisor → epoch-0: epoch.supersede');
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
  });

  test('serves until its replacement serves if its parent is killed', async () => {
    const world = await AgentWorld.startServing({}, [7, 8]);
    world.probeResult = 'live';
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.probes).toEqual(['1@7']);
    // The child's next message to its exited parent would block it, so another Envoy starts immediately.
    expect(world.newestProcess()).toMatchObject({ epoch: 0, baseId: 8 });
    expect(world.process('epoch-1').signals).toEqual([]);
    expect(world.events('restart.ended').map(({ outcome }) => outcome)).toEqual(['live', 'live']);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('needs no replacement if it has shut down its parent unobserved', async () => {
    const world = await AgentWorld.startServing();
    Object.assign(world, { probeResult: 'live', unseenMs: 60_300 });
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-0'));
    expect(world.probes).toEqual(['1@7']);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test.each([
    ['before its child can have requested it', 30_000, { code: 0 }],
    ['by a crash', 60_300, crashEnd],
  ])('is orphaned if its parent exits %s', async (_, unseenMs, end) => {
    const world = await AgentWorld.startServing({}, [7, 8]);
    Object.assign(world, { probeResult: 'live', unseenMs });
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-0'), end);
    expect(world.newestProcess().name).toBe('epoch-0b');
  });

  test('is not replaced if it is killed at the start of a stop', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    world.signal('SIGTERM');
    await world.settle();
    await endProcess(world, world.process('epoch-1'), { ...killedEnd, tookOverWithinMs: 180 });
    await world.passTime(60_000);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('does not count as live if it is killed without evidence, so that its parent serves and the next start is delayed', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-1'), killedEnd);
    expect(epochsStarted(world)).toEqual([0, 1]);
    await world.passTime(200);
    expect(world.preparedEpochs.at(-1)).toEqual({ epoch: 1, baseId: 7, validate: true });
  });
});

describe('signals', () => {
  test('SIGHUP restarts Envoy even if nothing has changed', async () => {
    const world = await AgentWorld.startServing();
    world.signal('SIGHUP');
    await world.settle();
    expect(world.events('supervisor.restart')).toEqual([{ type: 'supervisor.restart', reason: 'SIGHUP' }]);
    expect(epochsStarted(world)).toEqual([0, 1]);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('each SIGHUP causes one restart with the same configuration', async () => {
    const world = await AgentWorld.startServing();
    for (const epoch of [1, 2]) {
      world.signal('SIGHUP');
      await world.settle();
      expect(world.newestProcess().epoch).toBe(epoch);
      await becomesLive(world);
      await world.passTime(60_000);
      await endProcess(world, world.process(`epoch-${epoch - 1}`));
    }
    await world.certificate('digest-0');
    expect(epochsStarted(world)).toEqual([0, 1, 2]);
  });

  test("SIGHUP while a parent drains causes another restart after the parent's exit", async () => {
    const world = await drainingWorld();
    world.signal('SIGHUP');
    world.signal('SIGHUP');
    await world.settle();
    expect(epochsStarted(world)).toEqual([0, 1]);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await becomesLive(world);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-1'));
    expect(epochsStarted(world)).toEqual([0, 1, 2]);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('SIGUSR1 is delayed until a new Envoy is live, because it would kill an Envoy that has just started', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    world.signal('SIGUSR1');
    world.signal('SIGUSR1');
    expect(world.startedProcesses.map((p) => p.signals)).toEqual([['SIGUSR1', 'SIGUSR1'], []]);
    await becomesLive(world);
    expect(world.process('epoch-1').signals).toEqual(['SIGUSR1']);
    world.signal('SIGUSR1');
    expect(world.process('epoch-1').signals).toEqual(['SIGUSR1', 'SIGUSR1']);
  });

  test('SIGUSR1 is sent to every epoch, even while the agent stops', async () => {
    const world = await drainingWorld();
    world.signal('SIGUSR1');
    expect(world.startedProcesses.map((p) => p.signals)).toEqual([['SIGUSR1'], ['SIGUSR1']]);
    world.signal('SIGTERM');
    world.signal('SIGUSR1');
    expect(world.startedProcesses.map((p) => p.signals)).toEqual([
      ['SIGUSR1', 'SIGUSR1'],
      ['SIGUSR1', 'SIGUSR1'],
    ]);
  });
});

describe('SIGUSR1 and an Envoy that shuts down', () => {
  const reopenEnd = { code: null, signal: 'SIGUSR1' };

  test('is not sent to a parent that can exit at any time, or to an Envoy that received an exit request', async () => {
    const world = await drainingWorld();
    await world.passTime(53_999);
    world.signal('SIGUSR1');
    await world.passTime(1);
    world.signal('SIGUSR1');
    expect(world.startedProcesses.map((p) => p.signals)).toEqual([['SIGUSR1'], ['SIGUSR1', 'SIGUSR1']]);
    await world.passTime(6_000);
    await endProcess(world, world.process('epoch-0'));
    world.signal('SIGTERM');
    await world.passTime(5_000);
    world.signal('SIGUSR1');
    expect(world.process('epoch-1').signals).toEqual(['SIGUSR1', 'SIGUSR1', 'SIGTERM']);
  });

  test('terminates a parent on time, which counts as a requested exit', async () => {
    const world = await drainingWorld();
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'), reopenEnd);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(world.events('epoch.failed')).toEqual([]);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('terminates a parent too early, which orphans the child (fact 4)', async () => {
    const world = await drainingWorld();
    await world.passTime(30_000);
    await endProcess(world, world.process('epoch-0'), reopenEnd);
    expect(world.newestProcess().name).toBe('epoch-0b');
  });

  test('terminates a serving Envoy, which counts as a clean exit', async () => {
    const world = await AgentWorld.startServing();
    await endProcess(world, world.process('epoch-0'), reopenEnd);
    await world.passTime(200);
    expect(world.events('restart.decided').at(-1)).toMatchObject({ reason: 'Envoy ended' });
  });
});

describe('the parent', () => {
  test('is killed when it exceeds its shutdown time and grace period, not earlier', async () => {
    const world = await drainingWorld();
    await world.passTime(64_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await world.passTime(1);
    expect(world.process('epoch-0').signals).toEqual(['SIGKILL']);
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('exits on time up to a tenth before its shutdown time, because a busy host detects late that its child is live', async () => {
    const world = await drainingWorld();
    await world.passTime(54_000);
    await endProcess(world, world.process('epoch-0'));
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(world.events('epoch.failed')).toEqual([]);
  });

  test.each([
    ['34 s after the agent detects that its child is live', 20_000],
    ['as soon as the agent detects that its child is live', 60_000],
  ])('exits on time even %s, because its child was live unobserved before', async (_, unseenMs) => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    world.unseenMs = unseenMs;
    await becomesLive(world);
    await world.passTime(Math.max(0, 54_000 - unseenMs));
    await endProcess(world, world.process('epoch-0'));
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(world.events('epoch.failed')).toEqual([]);
  });

  test('is not overdue earlier after unobserved time, because its child can have become live later', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    world.unseenMs = 60_000;
    await becomesLive(world);
    await world.passTime(64_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await world.passTime(1);
    expect(world.process('epoch-0').signals).toEqual(['SIGKILL']);
  });

  test('orphans its child if it exits earlier (fact 4)', async () => {
    const world = await drainingWorld();
    await world.passTime(53_999);
    await endProcess(world, world.process('epoch-0'));
    expect(world.events('epoch.failed')).toMatchObject([{ name: 'epoch-0', during: 'draining', code: 0 }]);
    expect(world.newestProcess().name).toBe('epoch-0b');
  });

  test.each([
    ['at its shutdown time', 60_000],
    ['when it is overdue', 65_000],
  ])('is replaced after a crash unless it is overdue (it crashes %s)', async (_, afterMs) => {
    const world = await drainingWorld();
    await world.passTime(afterMs);
    await endProcess(world, world.process('epoch-0'), crashEnd);
    // The child may not have shut down its parent yet. An overdue parent is killed, and its child no longer needs it.
    expect(world.newestProcess().name).toBe(afterMs < 65_000 ? 'epoch-0b' : 'epoch-1');
  });

  test('exits on time whenever it exits if the parent-shutdown time is below 1 s', async () => {
    const world = await drainingWorld({ parentShutdownMs: 500 });
    await world.passTime(0);
    await endProcess(world, world.process('epoch-0'));
    expect(world.supervisorTags()).toEqual(['settled']);
  });
});

describe('readiness', () => {
  test('is kept during the hand-over, even though the child owns the admin port', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    world.envoyLive = false;
    expect(await world.requestReadiness()).toEqual({ ready: true, reason: '' });
    await becomesLive(world);
    expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
  });

  test('is again that of the serving Envoy after its child has exited', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    expect(world.events('handover.ended')).toHaveLength(1);
    expect(await world.requestReadiness()).toEqual({ ready: true, reason: '' });
    world.envoyLive = false;
    expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
  });
});
