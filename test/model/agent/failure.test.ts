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
  namesStarted,
  unlimitedRetries,
} from './scenes.ts';

checkEveryWorld();

describe('a child', () => {
  test('leaves its parent serving if it fails, and the same epoch number is retried', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1, lastOutput: 'cannot bind' });
    await world.passTime(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.process('epoch-0').signals).toEqual([]);
    expect((await world.requestReadiness()).ready).toBe(true);
  });

  test('is killed without SIGTERM if it is not live within 20 s (fact 2)', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await world.passTime(19_999);
    expect(world.newestProcess().signals).toEqual([]);
    await world.passTime(1);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.passTime(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.process('epoch-0').signals).toEqual([]);
  });

  test('is followed by epoch 0 if it is killed and its parent exits before it does', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await world.passTime(20_000);
    await endProcess(world, world.process('epoch-0'), crashEnd);
    expect((await world.requestReadiness()).ready).toBe(false);
    expect(epochsStarted(world)).toEqual([0, 1]);
    await endProcess(world, world.process('epoch-1'), killedEnd);
    await world.passTime(200);
    expect(epochsStarted(world)).toEqual([0, 1, 0]);
  });

  test('is killed and followed by epoch 0 if its parent exits during its start', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.process('epoch-1').signals).toEqual(['SIGKILL']);
    await endProcess(world, world.process('epoch-1'), killedEnd);
    await world.passTime(200);
    expect(epochsStarted(world)).toEqual([0, 1, 0]);
  });

  test('blocks only its own base ID if it does not exit on SIGKILL', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await world.passTime(20_000 + 9_999);
    expect(world.supervisorTags()).toEqual(['aborting']);
    expect((await world.requestReadiness()).ready).toBe(true);
    await world.nextStart();
    expect(world.events('epoch.unkillable')).toMatchObject([
      { name: 'epoch-1', reason: expect.stringContaining('SIGKILL') },
    ]);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
    await becomesLive(world);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(await world.requestReadiness()).toEqual({ ready: true, reason: '' });
    // Epoch 1 has finally exited, so its base ID is available again.
    await endProcess(world, world.process('epoch-1'), killedEnd);
    await world.certificate('digest-2');
    expect(namesStarted(world).at(-1)).toBe('epoch-1b');
  });

  test('blocks the restart if it does not exit on SIGKILL and there is no free base ID, while the old epoch keeps serving', async () => {
    const world = await AgentWorld.startServing({}, [7]);
    await world.certificate('digest-1');
    await world.passTime(3_600_000);
    expect(world.supervisorTags()).toEqual(['retries exhausted']);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
    expect((await world.requestReadiness()).ready).toBe(true);
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.nextStart();
    expect(namesStarted(world).at(-1)).toBe('epoch-1');
  });

  test('is kept at its deadline if it has become live since the last probe', async () => {
    const world = await AgentWorld.startServing();
    world.probeResult = 'live';
    await world.certificate('digest-1');
    await world.passTime(20_000);
    expect(world.probes).toEqual(['1@7']);
    expect(world.newestProcess().signals).toEqual([]);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(world.events('restart.ended').at(-1)).toMatchObject({ name: 'epoch-1', outcome: 'live' });
  });

  test('is killed 1 s after its last probe gets no response', async () => {
    const world = await AgentWorld.startServing();
    world.probeResult = 'no answer';
    await world.certificate('digest-1');
    await world.passTime(20_999);
    expect(world.newestProcess().signals).toEqual([]);
    await world.passTime(1);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    expect(world.events('restart.ended').at(-1)).toMatchObject({ name: 'epoch-1', outcome: 'not live in time' });
  });

  test('is kept if its live report is received during the last probe', async () => {
    const world = await AgentWorld.startServing();
    world.probeResult = 'no answer';
    await world.certificate('digest-1');
    await world.passTime(20_500);
    await becomesLive(world);
    expect(world.newestProcess().signals).toEqual([]);
    expect(world.supervisorTags()).toEqual(['settled']);
  });
});

describe('the only Envoy', () => {
  test('is restarted after a crash as epoch 0 after the first delay, without a check because its bootstrap is proven', async () => {
    const world = await AgentWorld.startServing();
    await endProcess(world, world.newestProcess(), killedEnd);
    expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy ended' });
    await world.passTime(199);
    expect(epochsStarted(world)).toEqual([0]);
    await world.passTime(1);
    expect(epochsStarted(world)).toEqual([0, 0]);
    expect(world.preparedEpochs.at(-1)).toMatchObject({ epoch: 0, validate: false });
  });

  test('is checked before it is started with a bootstrap that was never live', async () => {
    const world = await AgentWorld.startServing();
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.passTime(30_000);
    expect(world.preparedEpochs.at(-1)).toMatchObject({ epoch: 0, validate: true });
  });

  test('does not affect a pending start if it crashes', async () => {
    const world = await AgentWorld.startServing({ starts: { burst: 1, refillMs: 60_000 } });
    await world.certificate('digest-1');
    expect(world.supervisorTags()).toEqual(['rate limited']);
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(world.supervisorTags()).toEqual(['backing off']);
    expect(world.messages()).toContain('supervisor → start-limiter: start.withdraw');
    await world.passTime(61_000);
    expect(epochsStarted(world)).toEqual([0, 0]);
  });
});

describe("a child's crash while its parent drains", () => {
  test('ends the agent if the parent cannot be killed, has the only base ID, and a start is waiting', async () => {
    const world = await AgentWorld.startServing({ starts: { burst: 2, refillMs: 3_600_000 } }, [7]);
    await world.certificate('digest-1');
    await becomesLive(world);
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(world.supervisorTags()).toEqual(['rate limited']);
    await world.passTime(600_000);
    expect(world.output()).toMatchObject({
      exitCode: 1,
      trouble: expect.arrayContaining([expect.stringMatching(/^epoch-0: SIGKILL/)]),
    });
  });

  test('causes an immediate restart of the same epoch number the first time', async () => {
    const world = await drainingWorld();
    await world.passTime(30_000);
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.newestProcess().baseId).toBe(7);
    expect((await world.requestReadiness()).ready).toBe(false);
  });

  test('causes a restart of the same epoch number after the first delay the second time', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await becomesLive(world);
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(world.supervisorTags()).toEqual(['backing off']);
    await world.passTime(399);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    await world.passTime(1);
    expect(epochsStarted(world)).toEqual([0, 1, 1, 1]);
  });

  test('leaves the parent its full shutdown time, even with another child', async () => {
    const world = await drainingWorld();
    await world.passTime(30_000);
    await endProcess(world, world.newestProcess(), crashEnd);
    await becomesLive(world);
    await world.passTime(64_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await endProcess(world, world.process('epoch-0'));
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('leads to epoch 0 if the parent is overdue before the next child is live, because both can hang', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await world.passTime(64_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await world.passTime(1);
    expect(world.events('epoch.overdue')).toHaveLength(1);
    expect(world.events('restart.ended').at(-1)).toMatchObject({ name: 'epoch-1', outcome: 'parent lost' });
    expect(world.process('epoch-0').signals).toEqual(['SIGKILL']);
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.passTime(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0']);
  });

  test('leads to epoch 0 if the parent exits before the next child is live', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.passTime(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0']);
  });

  test('leads to no further start if the next child was live unobserved and has shut the parent down', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    Object.assign(world, { probeResult: 'live', unseenMs: 60_300 });
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(world.newestProcess().signals).toEqual([]);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1']);
  });

  test('leads to epoch 0 if the parent crashes before the next child is live', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await endProcess(world, world.process('epoch-0'), crashEnd);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.passTime(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0']);
  });

  test('is followed by a delay the second time, even if the parent crashes before the restart', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await becomesLive(world);
    await endProcess(world, world.newestProcess(), crashEnd);
    await endProcess(world, world.process('epoch-0'), crashEnd);
    expect(world.supervisorTags()).toEqual(['backing off']);
    await world.passTime(400);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0']);
  });

  test("is listed together with its parent's exit when retries are exhausted", async () => {
    const world = await drainingWorld({ retry: { budget: 2, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await endProcess(world, world.newestProcess(), crashEnd);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await endProcess(world, world.process('epoch-1'), killedEnd);
    await world.passTime(1_000);
    await endProcess(world, world.newestProcess(), { code: 1 });
    expect(world.output()?.trouble).toEqual([
      'agent exits: Envoy cannot be kept running',
      'epoch-1, serving: signal SIGSEGV',
      'epoch-1: its parent left first',
      'epoch-0, initializing: exit code 1',
    ]);
  });

  test('is followed by retries if the next child fails too', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await endProcess(world, world.newestProcess(), { code: 1 });
    await world.passTime(400);
    expect(epochsStarted(world)).toEqual([0, 1, 1, 1]);
  });

  test('ends the agent if the restart policy is exit', async () => {
    const world = await drainingWorld({ restartPolicy: 'exit' });
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(world.output()?.exitCode).toBe(1);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });
});

describe('the agent', () => {
  test.each([
    ['that exits by itself with 0', { code: 0 }, 0, []],
    [
      'that exits by itself with 3',
      { code: 3 },
      1,
      ['agent exits: Envoy cannot be kept running', expect.stringContaining('3')],
    ],
    ['that crashes', crashEnd, 1, ['agent exits: Envoy cannot be kept running', expect.stringContaining('SIGSEGV')]],
  ])('exits with code $2 under policy exit after an Envoy %s', async (_, end, exitCode, failureText) => {
    const world = await AgentWorld.startServing({ restartPolicy: 'exit' });
    await endProcess(world, world.newestProcess(), end);
    expect(world.output()).toEqual({ exitCode, trouble: failureText });
  });

  test('ends with 0 under policy exit if Envoy exits with 0 while its child starts, and stops the child', async () => {
    const world = await AgentWorld.startServing({ restartPolicy: 'exit' });
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-0'), { code: 0 });
    await endProcess(world, world.newestProcess(), killedEnd);
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  });

  test('fails under policy exit if an Envoy exits before it ever served, whatever the exit code is', async () => {
    const world = new AgentWorld({ restartPolicy: 'exit' });
    await world.settle();
    await endProcess(world, world.newestProcess(), { code: 0 });
    expect(world.output()?.exitCode).toBe(1);
  });

  test('keeps running under policy exit after a failed child while its Envoy serves', async () => {
    const world = await AgentWorld.startServing({ restartPolicy: 'exit' });
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    expect(world.output()).toBeUndefined();
    expect((await world.requestReadiness()).ready).toBe(true);
    await world.passTime(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
  });

  test('drains and stops Envoy for a change, and restarts it as epoch 0, if hot restart is off', async () => {
    const world = await AgentWorld.startServing({ hotRestart: false });
    await world.certificate('digest-1');
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.drainCalls).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
    expect((await world.requestReadiness()).ready).toBe(true);
    await world.passTime(4_499);
    expect(world.newestProcess().signals).toEqual([]);
    await world.passTime(1);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy is restarting without hot restart' });
    await endProcess(world, world.newestProcess(), killedEnd);
    expect(epochsStarted(world)).toEqual([0, 0]);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('restarts an Envoy immediately if it exits during its drain and hot restart is off', async () => {
    const world = await AgentWorld.startServing({ hotRestart: false, terminationDrainMs: 1_000 });
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess());
    expect(epochsStarted(world)).toEqual([0, 0]);
  });

  test('kills an Envoy that has not drained within the termination drain time if hot restart is off', async () => {
    const world = await AgentWorld.startServing({ hotRestart: false, terminationDrainMs: 1_000 });
    await world.certificate('digest-1');
    await world.passTime(1_000);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
  });

  test('restarts the only Envoy after a crash if hot restart is off', async () => {
    const world = await AgentWorld.startServing({ hotRestart: false });
    await endProcess(world, world.newestProcess(), crashEnd);
    await world.passTime(200);
    expect(epochsStarted(world)).toEqual([0, 0]);
  });
});

describe('the start limiter', () => {
  test('permits ten starts immediately, then one per second', async () => {
    const world = await AgentWorld.startServing({ retry: { budget: 1_000, firstDelayMs: 1, maxDelayMs: 1 } });
    const from = world.startedProcesses.length;
    const startedAt: number[] = [];
    for (let crash = 0; crash < 15; crash++) {
      await endProcess(world, world.newestProcess(), { code: 1 });
      await world.nextStart();
      startedAt.push(world.clock.now());
    }
    expect(world.startedProcesses.length - from).toBe(15);
    // The first start used one of ten tokens. The other nine are used within milliseconds; then each start waits 1 s from its request.
    expect(startedAt).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 1_010, 2_011, 3_012, 4_013, 5_014, 6_015]);
  });

  test('refills its bucket during a minute without starts, one token at a time up to its capacity', async () => {
    const world = await AgentWorld.startServing({ ...unlimitedRetries, starts: { burst: 3, refillMs: 1_000 } });
    const startsAfter = async (crashes: number): Promise<number[]> => {
      const from = world.clock.now();
      const startTimes: number[] = [];
      for (let crash = 0; crash < crashes; crash++) {
        await endProcess(world, world.newestProcess(), { code: 1 });
        world.signal('SIGHUP');
        await world.nextStart();
        startTimes.push(world.clock.now() - from);
      }
      return startTimes;
    };
    // The first start used one of three tokens.
    expect(await startsAfter(2)).toEqual([0, 0]);
    await world.passTime(2_000);
    expect(await startsAfter(3)).toEqual([0, 0, 1_000]);
    await world.passTime(60_000);
    expect(await startsAfter(4)).toEqual([0, 0, 0, 1_000]);
  });
});

test('an epoch that has ended has no actor', async () => {
  const world = await drainingWorld();
  expect(world.epochActors()).toEqual(['epoch-0', 'epoch-1']);
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  expect(world.epochActors()).toEqual(['epoch-1']);
  await endProcess(world, world.process('epoch-1'), crashEnd);
  expect(world.epochActors()).toEqual([]);
});

test('an agent exits with the error that its chart throws', async () => {
  const world = await AgentWorld.startServing();
  world.breakNextProcess = true;
  await world.certificate('digest-1');
  expect(world.output()?.exitCode).toBe(1);
  expect(world.output()?.trouble.join('\n')).toMatch(/epoch-1 failed in the agent: an internal error/);
  expect(world.supervisorTags()).toEqual(['gone']);
  // No diagram contains events after a bug.
  AgentWorld.instances.splice(0);
});
