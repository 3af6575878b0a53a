/** A serving epoch that accepts no more children is replaced by an Envoy under the agent's other base ID. */
import { describe, expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  killedEnd,
  namesAlive,
  namesStarted,
  orphanedWorld,
  rejectChild,
  replacedWorld,
  replacingWorld,
} from './scenes.ts';

checkEveryWorld();

describe('a parent that rejects its child', () => {
  test('is repaired, gets a child with the same number, and is not repaired twice without success', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await rejectChild(world);
    expect(world.repairedBaseIds).toEqual([7]);
    await world.passTime(200);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1']);
    await becomesLive(world);
    // A repair that once succeeded is tried again when needed.
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await rejectChild(world);
    expect(world.repairedBaseIds).toEqual([7, 7]);
  });

  test('is replaced under the second base ID if it cannot be repaired', async () => {
    const world = await replacingWorld();
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
    expect(world.preparedEpochs.at(-1)).toEqual({ epoch: 0, baseId: 8, validate: true });
    expect((await world.requestReadiness()).ready).toBe(true);
    expect(world.drainCalls).toEqual([]);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(world.drainCalls).toEqual([{ epoch: 0, baseId: 7, replaced: true }]);
  });

  test("gets a replacement that is probed at another port, as is the replacement's child", async () => {
    const world = await replacedWorld();
    const ports = (): unknown[] => world.events('serving.began').map(({ adminPort }) => adminPort);
    expect(ports()).toEqual([15_000, 16_000]);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await becomesLive(world);
    expect(world.newestProcess().name).toBe('epoch-1b');
    expect(ports()).toEqual([15_000, 16_000, 16_000]);
    expect(world.drainedAt).toEqual([15_000]);
  });

  test('is replaced under the second base ID if it rejects its child even after the repair', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await rejectChild(world);
    await world.passTime(200);
    await rejectChild(world);
    expect(world.repairedBaseIds).toEqual([7]);
    await world.passTime(400);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0b']);
  });

  test('is not repaired if its child fails in another way', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    expect(world.repairedBaseIds).toEqual([]);
  });

  test('is repaired even if it has the second base ID', async () => {
    const world = await replacedWorld();
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    world.repairError = undefined;
    await world.certificate('digest-2');
    expect(world.newestProcess().name).toBe('epoch-1b');
    await rejectChild(world);
    expect(world.repairedBaseIds).toEqual([8]);
  });

  test('is followed by epoch 0 if it crashes during the repair', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    world.newestProcess().exit({ code: 1, refusedByParent: true });
    world.process('epoch-0').exit(killedEnd);
    await world.passTime(400);
    expect(world.newestProcess().name).toBe('epoch-0');
  });
});

describe('a parent that exits early', () => {
  test('orphans its child, and a replacement with the known valid configuration is started immediately', async () => {
    const world = await orphanedWorld();
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
    expect(world.clock.now()).toBe(20_000);
    // The digest was compared when the orphan became live.
    expect(world.preparedEpochs.at(-1)).toEqual({ epoch: 0, baseId: 8, validate: false });
    expect((await world.requestReadiness()).ready).toBe(true);
    expect(world.process('epoch-1').signals).toEqual([]);
  });

  test('has its orphan stopped 8.5 s after the replacement is live, without SIGTERM, before the orphan would abort', async () => {
    const world = await orphanedWorld();
    await becomesLive(world);
    expect(world.events('epoch.retire')).toEqual([{ type: 'epoch.retire', lingerMs: 8_500, isOrphaned: true }]);
    await world.passTime(8_499);
    expect(world.process('epoch-1').signals).toEqual([]);
    await world.passTime(1);
    expect(world.process('epoch-1').signals).toEqual(['SIGKILL']);
    await endProcess(world, world.process('epoch-1'), killedEnd);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(namesAlive(world)).toEqual(['epoch-0b']);
  });

  test('has its orphan stopped after the parent-shutdown time if that is shorter', async () => {
    const world = await drainingWorld({ parentShutdownMs: 3_000 });
    await endProcess(world, world.process('epoch-0'), killedEnd);
    await becomesLive(world);
    expect(world.events('epoch.retire')).toEqual([{ type: 'epoch.retire', lingerMs: 3_000, isOrphaned: true }]);
  });

  test('does not affect the replacement if the orphan exits before the replacement is live', async () => {
    const world = await orphanedWorld();
    await endProcess(world, world.process('epoch-1'), crashEnd);
    expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy ended' });
    // No time limit applies, because no other Envoy serves.
    await world.passTime(60_000);
    expect(world.process('epoch-0b').signals).toEqual([]);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect((await world.requestReadiness()).ready).toBe(true);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
    expect(world.events('epoch.retire')).toEqual([]);
  });

  test('is followed by epoch 0 with the first base ID if its orphan and the replacement exit too', async () => {
    const world = await orphanedWorld();
    await endProcess(world, world.process('epoch-1'), crashEnd);
    await endProcess(world, world.process('epoch-0b'), { code: 1 });
    await world.passTime(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b', 'epoch-0']);
  });

  test('is replaced with the pending change if there is one', async () => {
    const world = await drainingWorld();
    await world.certificate('digest-2');
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.newestProcess().name).toBe('epoch-0b');
    expect(world.preparedEpochs.at(-1)?.validate).toBe(true);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is replaced with a new retry budget after retries are exhausted', async () => {
    const world = await drainingWorld({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await becomesLive(world);
    await world.certificate('digest-3');
    expect(world.supervisorTags()).toEqual(['waiting for parent exit']);
    await endProcess(world, world.process('epoch-1'), killedEnd);
    expect(world.newestProcess().name).toBe('epoch-0b');
  });
});

describe('the replaced epoch', () => {
  test('closes its listeners, and is stopped by SIGTERM after the parent-shutdown time', async () => {
    const world = await replacedWorld();
    expect(world.events('epoch.retire')).toEqual([{ type: 'epoch.retire', lingerMs: 60_000, isOrphaned: false }]);
    expect(world.events('epoch.drained')).toMatchObject([{ name: 'epoch-0' }]);
    await world.passTime(59_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await world.passTime(1);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    await endProcess(world, world.process('epoch-0'));
    expect(namesAlive(world)).toEqual(['epoch-0b']);
    expect(world.events('epoch.exited')).toMatchObject([{ name: 'epoch-0', code: 0 }]);
  });

  test('is stopped immediately if its listeners cannot be closed, because it would accept connections', async () => {
    const world = await replacingWorld();
    world.drainError = 'connect ECONNREFUSED 127.0.0.1:15000';
    await becomesLive(world);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    expect(world.events('epoch.drain-failed')).toEqual([
      {
        type: 'epoch.drain-failed',
        name: 'epoch-0',
        epoch: 0,
        reason: 'connect ECONNREFUSED 127.0.0.1:15000',
      },
    ]);
  });

  test('is killed if it does not exit on SIGTERM', async () => {
    const world = await replacedWorld();
    await world.passTime(64_999);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    await world.passTime(1);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM', 'SIGKILL']);
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('affects no other epoch if it crashes during its shutdown', async () => {
    const world = await replacedWorld();
    await endProcess(world, world.process('epoch-0'), crashEnd);
    expect(world.events('epoch.failed').filter(({ name }) => name === 'epoch-0')).toEqual([]);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect((await world.requestReadiness()).ready).toBe(true);
  });
});

describe('the replacement', () => {
  test('serves status and metrics as soon as it is live', async () => {
    const world = await replacingWorld();
    expect(world.adminOf).toBe(7);
    await becomesLive(world);
    expect(world.adminOf).toBe(8);
    expect(await world.requestReadiness()).toEqual({ ready: true, reason: '' });
  });

  test('has a child with the same base ID after the replaced epoch has exited', async () => {
    const world = await replacedWorld();
    await world.certificate('digest-2');
    expect(world.supervisorTags()).toEqual(['waiting for parent exit']);
    await world.passTime(50_000);
    await endProcess(world, world.process('epoch-0'));
    expect(world.newestProcess()).toMatchObject({ name: 'epoch-1b', epoch: 1, baseId: 8 });
    expect(world.preparedEpochs.at(-1)?.validate).toBe(true);
    await becomesLive(world);
    expect(world.messages()).toContain('supervisor → epoch-0b: epoch.supersede');
    expect(world.adminOf).toBe(8);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0b'));
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is itself replaced under the first base ID', async () => {
    const world = await replacedWorld();
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await rejectChild(world);
    await world.passTime(1_000);
    expect(world.newestProcess()).toMatchObject({ name: 'epoch-0', epoch: 0, baseId: 7 });
    await becomesLive(world);
    expect(world.adminOf).toBe(7);
    expect(world.drainCalls.at(-1)).toEqual({ epoch: 0, baseId: 8, replaced: true });
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0b'));
    expect(namesAlive(world)).toEqual(['epoch-0']);
  });

  test('is restarted under its own base ID if it crashes while the replaced epoch shuts down', async () => {
    const world = await replacedWorld();
    await endProcess(world, world.process('epoch-0b'), crashEnd);
    expect((await world.requestReadiness()).ready).toBe(false);
    expect(world.supervisorTags()).toEqual(['backing off']);
    await world.passTime(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b', 'epoch-0b']);
    await becomesLive(world);
    expect(world.adminOf).toBe(8);
    // The retiring epoch has already received its order.
    expect(world.events('epoch.retire')).toHaveLength(1);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is still restarted after a crash if the replaced epoch exits in between', async () => {
    const world = await replacedWorld();
    await endProcess(world, world.process('epoch-0b'), crashEnd);
    await world.passTime(1_000);
    await world.passTime(59_000);
    await endProcess(world, world.process('epoch-0'));
    expect(world.newestProcess().name).toBe('epoch-0b');
    expect(world.newestProcess().signals).toEqual([]);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('kills an overdue replaced epoch even while no epoch serves', async () => {
    const world = await replacedWorld();
    await endProcess(world, world.process('epoch-0b'), crashEnd);
    await world.passTime(65_000);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  test('is followed by a full restart with a drain if it crashes with a valid bootstrap', async () => {
    const world = await replacingWorld();
    await endProcess(world, world.newestProcess(), { code: 1, lastOutput: 'cannot bind' });
    expect(world.supervisorTags()).toEqual(['draining', 'full restart']);
    expect(world.drainCalls).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
    expect((await world.requestReadiness()).ready).toBe(true);
    await world.passTime(4_500);
    expect(world.process('epoch-0').signals).toEqual(['SIGKILL']);
    expect((await world.requestReadiness()).ready).toBe(false);
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.newestProcess()).toMatchObject({ name: 'epoch-0', baseId: 7 });
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is retried if its bootstrap is rejected, while the old epoch keeps serving', async () => {
    const world = await AgentWorld.startServing();
    world.repairError = 'another version';
    await world.certificate('digest-1');
    await rejectChild(world);
    world.rejectBootstrap = 'no such field';
    await world.passTime(200);
    expect(world.supervisorTags()).toEqual(['backing off']);
    expect((await world.requestReadiness()).ready).toBe(true);
    world.rejectBootstrap = undefined;
    await world.passTime(400);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
  });

  test('is retried under the same base ID if it gets no process', async () => {
    const world = await AgentWorld.startServing();
    world.repairError = 'another version';
    await world.certificate('digest-1');
    await rejectChild(world);
    world.spawnError = 'spawn envoy EAGAIN';
    await world.passTime(200);
    expect(world.supervisorTags()).toEqual(['backing off']);
    world.spawnError = undefined;
    await world.passTime(400);
    expect(world.newestProcess().name).toBe('epoch-0b');
  });

  test('is killed and retried if it is not live in time', async () => {
    const world = await replacingWorld();
    await world.passTime(20_000);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    expect(world.process('epoch-0').signals).toEqual([]);
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.passTime(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b', 'epoch-0b']);
  });

  test("clears the parent's rejection, so that the next change is a hot restart again", async () => {
    const world = await replacedWorld();
    world.repairError = undefined;
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await rejectChild(world);
    await world.passTime(1_000);
    expect(world.newestProcess().name).toBe('epoch-1b');
  });
});

describe('an agent with one base ID', () => {
  test.each([
    ['refuses its child', () => replacingWorld({}, [7]), 'epoch-0'],
    ['is doomed', () => orphanedWorld({}, [7]), 'epoch-1'],
  ])('drains an Envoy that %s and restarts it as epoch 0', async (_, scene, servingName) => {
    const world = await scene();
    expect(world.supervisorTags()).toEqual(['draining', 'full restart']);
    expect(world.drainCalls).toMatchObject([{ baseId: 7, replaced: false }]);
    expect(world.process(servingName).signals).toEqual([]);
    await world.passTime(4_500);
    expect(world.process(servingName).signals).toEqual(['SIGKILL']);
    await endProcess(world, world.process(servingName), killedEnd);
    expect(world.newestProcess()).toMatchObject({ name: 'epoch-0', baseId: 7 });
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });
});
