/** A serving epoch that accepts no child any more is replaced by an Envoy under the agent's other base ID. */
import { describe, expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  checkEveryWorld,
  crashed,
  doomed,
  ends,
  goesLive,
  handedOver,
  killed,
  namesAlive,
  namesStarted,
  refuse,
  replaced,
  tainted,
} from './scenes.ts';

checkEveryWorld();

describe('a parent that rejects its child', () => {
  test('is repaired and gets a child of the same number, and is not repaired twice without success', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await refuse(world);
    expect(world.repaired).toEqual([7]);
    await world.pass(200);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1']);
    await goesLive(world);
    // A repair that succeeded once is tried again when it is needed again.
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await refuse(world);
    expect(world.repaired).toEqual([7, 7]);
  });

  test('and cannot be repaired is replaced under the second base id', async () => {
    const world = await tainted();
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
    expect(world.prepared.at(-1)).toEqual({ epoch: 0, baseId: 8, validate: true });
    expect((await world.ask()).ready).toBe(true);
    expect(world.drained).toEqual([]);
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
    expect(world.drained).toEqual([{ epoch: 0, baseId: 7, replaced: true }]);
  });

  test('is probed at another port under the second base id, and so is its child', async () => {
    const world = await replaced();
    const ports = (): unknown[] => world.events('serving.began').map(({ adminPort }) => adminPort);
    expect(ports()).toEqual([15_000, 16_000]);
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await goesLive(world);
    expect(world.newest().name).toBe('epoch-1b');
    expect(ports()).toEqual([15_000, 16_000, 16_000]);
    expect(world.drainedAt).toEqual([15_000]);
  });

  test('and rejects its child after the repair too is replaced under the second base id', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await refuse(world);
    await world.pass(200);
    await refuse(world);
    expect(world.repaired).toEqual([7]);
    await world.pass(400);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0b']);
  });

  test('whose child fails otherwise is not repaired', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await ends(world, world.newest(), { code: 1 });
    expect(world.repaired).toEqual([]);
  });

  test('is repaired under the second base id as well', async () => {
    const world = await replaced();
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    world.repairAnswer = undefined;
    await world.certificate('digest-2');
    expect(world.newest().name).toBe('epoch-1b');
    await refuse(world);
    expect(world.repaired).toEqual([8]);
  });

  test('that crashes while it is being repaired is followed by epoch 0', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    world.newest().exit({ code: 1, refusedByParent: true });
    world.process('epoch-0').exit(killed);
    await world.pass(400);
    expect(world.newest().name).toBe('epoch-0');
  });
});

describe('an early exit of the parent', () => {
  test('orphans the child, and a replacement with the known valid configuration is started at once', async () => {
    const world = await doomed();
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
    expect(world.clock.now()).toBe(20_000);
    // The digest was compared when the orphan became live.
    expect(world.prepared.at(-1)).toEqual({ epoch: 0, baseId: 8, validate: false });
    expect((await world.ask()).ready).toBe(true);
    expect(world.process('epoch-1').signals).toEqual([]);
  });

  test('stops the orphan 8.5 s after its replacement is live, before it would abort, without SIGTERM', async () => {
    const world = await doomed();
    await goesLive(world);
    expect(world.events('epoch.retire')).toEqual([{ type: 'epoch.retire', lingerMs: 8_500, doomed: true }]);
    await world.pass(8_499);
    expect(world.process('epoch-1').signals).toEqual([]);
    await world.pass(1);
    expect(world.process('epoch-1').signals).toEqual(['SIGKILL']);
    await ends(world, world.process('epoch-1'), killed);
    expect(world.supervisorIs()).toEqual(['settled']);
    expect(namesAlive(world)).toEqual(['epoch-0b']);
  });

  test('stops the orphan after the parent-shutdown time where that is shorter', async () => {
    const world = await handedOver({ parentShutdownMs: 3_000 });
    await ends(world, world.process('epoch-0'), killed);
    await goesLive(world);
    expect(world.events('epoch.retire')).toEqual([{ type: 'epoch.retire', lingerMs: 3_000, doomed: true }]);
  });

  test('and of the orphan, before its replacement is live, does not affect the replacement', async () => {
    const world = await doomed();
    await ends(world, world.process('epoch-1'), crashed);
    expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy ended' });
    // No time limit applies, because no other Envoy serves.
    await world.pass(60_000);
    expect(world.process('epoch-0b').signals).toEqual([]);
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
    expect((await world.ask()).ready).toBe(true);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
    expect(world.events('epoch.retire')).toEqual([]);
  });

  test('and of the orphan and its replacement is followed by epoch 0 of the first base id', async () => {
    const world = await doomed();
    await ends(world, world.process('epoch-1'), crashed);
    await ends(world, world.process('epoch-0b'), { code: 1 });
    await world.pass(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b', 'epoch-0']);
  });

  test('while a change is pending leads to a replacement with the change', async () => {
    const world = await handedOver();
    await world.certificate('digest-2');
    await ends(world, world.process('epoch-0'), killed);
    expect(world.newest().name).toBe('epoch-0b');
    expect(world.prepared.at(-1)?.validate).toBe(true);
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('after exhausted retries leads to a replacement with a new retry budget', async () => {
    const world = await handedOver({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await goesLive(world);
    await world.certificate('digest-3');
    expect(world.supervisorIs()).toEqual(['waiting for parent exit']);
    await ends(world, world.process('epoch-1'), killed);
    expect(world.newest().name).toBe('epoch-0b');
  });
});

describe('the replaced epoch', () => {
  test('closes its listeners, and is stopped by SIGTERM when the parent-shutdown time has passed', async () => {
    const world = await replaced();
    expect(world.events('epoch.retire')).toEqual([{ type: 'epoch.retire', lingerMs: 60_000, doomed: false }]);
    expect(world.events('epoch.drained')).toMatchObject([{ name: 'epoch-0' }]);
    await world.pass(59_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await world.pass(1);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    await ends(world, world.process('epoch-0'));
    expect(namesAlive(world)).toEqual(['epoch-0b']);
    expect(world.events('epoch.exited')).toMatchObject([{ name: 'epoch-0', code: 0 }]);
  });

  test('whose listeners cannot be closed is stopped at once, because it would accept connections', async () => {
    const world = await tainted();
    world.drainAnswer = 'connect ECONNREFUSED 127.0.0.1:15000';
    await goesLive(world);
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

  test('that does not exit on SIGTERM is killed', async () => {
    const world = await replaced();
    await world.pass(64_999);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    await world.pass(1);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM', 'SIGKILL']);
    await ends(world, world.process('epoch-0'), killed);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('that crashes during its shutdown affects no other epoch', async () => {
    const world = await replaced();
    await ends(world, world.process('epoch-0'), crashed);
    expect(world.events('epoch.failed').filter(({ name }) => name === 'epoch-0')).toEqual([]);
    expect(world.supervisorIs()).toEqual(['settled']);
    expect((await world.ask()).ready).toBe(true);
  });
});

describe('the replacement', () => {
  test('serves status and metrics from the moment it is live', async () => {
    const world = await tainted();
    expect(world.adminOf).toBe(7);
    await goesLive(world);
    expect(world.adminOf).toBe(8);
    expect(await world.ask()).toEqual({ ready: true, reason: '' });
  });

  test('has a child of its own base id when the replaced epoch has exited', async () => {
    const world = await replaced();
    await world.certificate('digest-2');
    expect(world.supervisorIs()).toEqual(['waiting for parent exit']);
    await world.pass(50_000);
    await ends(world, world.process('epoch-0'));
    expect(world.newest()).toMatchObject({ name: 'epoch-1b', epoch: 1, baseId: 8 });
    expect(world.prepared.at(-1)?.validate).toBe(true);
    await goesLive(world);
    expect(world.messages()).toContain('supervisor → epoch-0b: epoch.supersede');
    expect(world.adminOf).toBe(8);
    await world.pass(60_000);
    await ends(world, world.process('epoch-0b'));
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('is itself replaced under the first base id', async () => {
    const world = await replaced();
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await refuse(world);
    await world.pass(1_000);
    expect(world.newest()).toMatchObject({ name: 'epoch-0', epoch: 0, baseId: 7 });
    await goesLive(world);
    expect(world.adminOf).toBe(7);
    expect(world.drained.at(-1)).toEqual({ epoch: 0, baseId: 8, replaced: true });
    await world.pass(60_000);
    await ends(world, world.process('epoch-0b'));
    expect(namesAlive(world)).toEqual(['epoch-0']);
  });

  test('that crashes while the first retires is restarted under its own base id', async () => {
    const world = await replaced();
    await ends(world, world.process('epoch-0b'), crashed);
    expect((await world.ask()).ready).toBe(false);
    expect(world.supervisorIs()).toEqual(['backing off']);
    await world.pass(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b', 'epoch-0b']);
    await goesLive(world);
    expect(world.adminOf).toBe(8);
    // The retiring epoch already received its order.
    expect(world.events('epoch.retire')).toHaveLength(1);
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('that is restarting keeps starting when the retired one exits', async () => {
    const world = await replaced();
    await ends(world, world.process('epoch-0b'), crashed);
    await world.pass(1_000);
    await world.pass(59_000);
    await ends(world, world.process('epoch-0'));
    expect(world.newest().name).toBe('epoch-0b');
    expect(world.newest().signals).toEqual([]);
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('kills an overdue retired epoch even while no epoch serves', async () => {
    const world = await replaced();
    await ends(world, world.process('epoch-0b'), crashed);
    await world.pass(65_000);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  test('that crashes with a valid bootstrap is followed by a full, drained restart', async () => {
    const world = await tainted();
    await ends(world, world.newest(), { code: 1, lastWords: 'cannot bind' });
    expect(world.supervisorIs()).toEqual(['draining', 'full restart']);
    expect(world.drained).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
    expect((await world.ask()).ready).toBe(true);
    await world.pass(4_500);
    expect(world.process('epoch-0').signals).toEqual(['SIGKILL']);
    expect((await world.ask()).ready).toBe(false);
    await ends(world, world.process('epoch-0'), killed);
    expect(world.newest()).toMatchObject({ name: 'epoch-0', baseId: 7 });
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('whose bootstrap is rejected is retried, and the old one keeps serving', async () => {
    const world = await AgentWorld.serving();
    world.repairAnswer = 'another version';
    await world.certificate('digest-1');
    await refuse(world);
    world.rejectBootstrap = 'no such field';
    await world.pass(200);
    expect(world.supervisorIs()).toEqual(['backing off']);
    expect((await world.ask()).ready).toBe(true);
    world.rejectBootstrap = undefined;
    await world.pass(400);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b']);
  });

  test('that gets no process is retried, without a conclusion about base ids', async () => {
    const world = await AgentWorld.serving();
    world.repairAnswer = 'another version';
    await world.certificate('digest-1');
    await refuse(world);
    world.spawnAnswer = 'spawn envoy EAGAIN';
    await world.pass(200);
    expect(world.supervisorIs()).toEqual(['backing off']);
    world.spawnAnswer = undefined;
    await world.pass(400);
    expect(world.newest().name).toBe('epoch-0b');
  });

  test('that is not live in time is killed and retried', async () => {
    const world = await tainted();
    await world.pass(20_000);
    expect(world.newest().signals).toEqual(['SIGKILL']);
    expect(world.process('epoch-0').signals).toEqual([]);
    await ends(world, world.newest(), killed);
    await world.pass(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-0b', 'epoch-0b']);
  });

  test('clears the parent’s rejection, so the next change is a hot restart again', async () => {
    const world = await replaced();
    world.repairAnswer = undefined;
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    await world.certificate('digest-2');
    await refuse(world);
    await world.pass(1_000);
    expect(world.newest().name).toBe('epoch-1b');
  });
});

describe('an agent with one base id', () => {
  test.each([
    ['refuses its child', () => tainted({}, [7]), 'epoch-0'],
    ['is doomed', () => doomed({}, [7]), 'epoch-1'],
  ])('drains an Envoy that %s and restarts it as epoch 0', async (_, scene, served) => {
    const world = await scene();
    expect(world.supervisorIs()).toEqual(['draining', 'full restart']);
    expect(world.drained).toMatchObject([{ baseId: 7, replaced: false }]);
    expect(world.process(served).signals).toEqual([]);
    await world.pass(4_500);
    expect(world.process(served).signals).toEqual(['SIGKILL']);
    await ends(world, world.process(served), killed);
    expect(world.newest()).toMatchObject({ name: 'epoch-0', baseId: 7 });
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });
});
