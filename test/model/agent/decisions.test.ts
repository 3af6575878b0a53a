/** Each start is reported when it is decided and when it ends, for logs, traces and metrics. */
import { describe, expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  killedEnd,
  orphanedWorld,
  rejectChild,
  replacingWorld,
} from './scenes.ts';

checkEveryWorld();

const lastDecided = (world: AgentWorld): unknown => world.events('restart.decided').at(-1);
const lastEnded = (world: AgentWorld): unknown => world.events('restart.ended').at(-1);

describe('the decided start', () => {
  test('has the reason of the first start until an Envoy is live', async () => {
    const world = new AgentWorld();
    await world.settle();
    expect(lastDecided(world)).toEqual({
      type: 'restart.decided',
      name: 'epoch-0',
      epoch: 0,
      reason: 'first start',
      how: 'cold start',
      attempt: 1,
    });
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    await world.passTime(200);
    expect(lastDecided(world)).toMatchObject({ reason: 'first start', attempt: 2 });
  });

  test.each<[string, (world: AgentWorld) => Promise<void>, object]>([
    ['a changed configuration', (world) => world.certificate('digest-1'), { reason: 'configuration changed' }],
    ['a SIGHUP', async (world) => world.signal('SIGHUP'), { reason: 'ordered' }],
  ])('is a hot restart for %s', async (_, trigger, expected) => {
    const world = await AgentWorld.startServing();
    await trigger(world);
    await world.settle();
    expect(lastDecided(world)).toEqual({
      type: 'restart.decided',
      name: 'epoch-1',
      epoch: 1,
      how: 'hot restart',
      attempt: 1,
      ...expected,
    });
  });

  test.each([
    ['exits by itself', { code: 0 }, 'Envoy ended'],
    ['exits with an error', { code: 1 }, 'Envoy crashed'],
    ['crashes', crashEnd, 'Envoy crashed'],
    ['is killed for lack of memory', { ...killedEnd, outOfMemory: true }, 'out of memory'],
  ])('is a cold start after an Envoy that %s', async (_, end, reason) => {
    const world = await AgentWorld.startServing();
    await endProcess(world, world.newestProcess(), end);
    await world.passTime(200);
    expect(lastDecided(world)).toMatchObject({ name: 'epoch-0', reason, how: 'cold start', attempt: 2 });
  });

  test('is another child of the same parent after a crash while that parent drains', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(lastDecided(world)).toMatchObject({
      name: 'epoch-1',
      epoch: 1,
      reason: 'Envoy crashed',
      how: 'hot restart',
    });
  });

  test.each<[string, (world: AgentWorld) => Promise<void>, string]>([
    ['a change', (world) => world.certificate('digest-1'), 'configuration changed'],
    ['a SIGHUP', async (world) => world.signal('SIGHUP'), 'ordered'],
  ])('has %s during the first start as its reason', async (_, trigger, reason) => {
    const world = new AgentWorld();
    await world.settle();
    await trigger(world);
    await world.settle();
    await becomesLive(world);
    expect(world.events('restart.ended')).toMatchObject([{ reason: 'first start', outcome: 'live' }]);
    expect(lastDecided(world)).toMatchObject({ name: 'epoch-1', reason, how: 'hot restart' });
  });

  test('is retried as a first start if it fails after a restart was requested during it', async () => {
    const world = new AgentWorld();
    await world.settle();
    world.signal('SIGHUP');
    await world.settle();
    await endProcess(world, world.newestProcess(), { code: 1 });
    await world.passTime(200);
    expect(lastDecided(world)).toMatchObject({ reason: 'first start', how: 'cold start', attempt: 2 });
  });

  test('is a replacement if a parent exits early', async () => {
    const world = await orphanedWorld();
    expect(lastDecided(world)).toEqual({
      type: 'restart.decided',
      name: 'epoch-0b',
      epoch: 0,
      reason: 'parent died early',
      how: 'replacement',
      attempt: 1,
    });
  });

  test('has the reason of the first attempt if it is a retry', async () => {
    const world = await AgentWorld.startServing();
    world.signal('SIGHUP');
    await world.settle();
    await endProcess(world, world.newestProcess(), { code: 1 });
    await world.passTime(200);
    expect(lastDecided(world)).toMatchObject({ reason: 'ordered', how: 'hot restart', attempt: 2 });
  });

  test('is a cold start for a full restart', async () => {
    const world = await replacingWorld({}, [7]);
    await world.passTime(4_500);
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(lastDecided(world)).toMatchObject({ reason: 'configuration changed', how: 'cold start' });
  });

  test('follows a report that no Envoy serves, if the serving Envoy exits while it drains before a full restart', async () => {
    const world = await AgentWorld.startServing({ hotRestart: false });
    await world.certificate('digest-1');
    expect(world.events('serving.ended')).toEqual([]);
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.events('serving.ended')).toEqual([{ type: 'serving.ended', reason: 'Envoy ended' }]);
    expect(lastDecided(world)).toMatchObject({ reason: 'configuration changed', how: 'cold start' });
  });
});

describe('the outcome of a start', () => {
  test('is live, with the duration until it was live', async () => {
    const world = await AgentWorld.startServing();
    expect(lastEnded(world)).toEqual({
      type: 'restart.ended',
      name: 'epoch-0',
      epoch: 0,
      reason: 'first start',
      how: 'cold start',
      outcome: 'live',
      timeToLiveMs: 300,
    });
  });

  test('is a rejected bootstrap if Envoy rejects its bootstrap', async () => {
    const world = await AgentWorld.startServing();
    world.rejectBootstrap = 'no such field';
    await world.certificate('digest-1');
    expect(lastEnded(world)).toStrictEqual({
      type: 'restart.ended',
      name: 'epoch-1',
      epoch: 1,
      reason: 'configuration changed',
      how: 'hot restart',
      outcome: 'bootstrap refused',
    });
  });

  test('names the control plane as unreachable if it accepts no connection before the start', async () => {
    const world = await AgentWorld.startServing();
    world.unreachableReason = 'istiod:15010 (connection refused)';
    await world.certificate('digest-1');
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'control plane unreachable' });
    expect(world.events('epoch.failed')).toMatchObject([
      { during: 'reaching the control plane', reason: 'istiod:15010 (connection refused)' },
    ]);
    expect((await world.requestReadiness()).ready).toBe(true);
  });

  test('is an unreachable control plane only if the Envoy would wait for it as a child', async () => {
    const world = new AgentWorld();
    world.unreachableReason = 'istiod:15010 (connection refused)';
    await world.settle();
    await becomesLive(world);
    expect((await world.requestReadiness()).ready).toBe(true);
    expect(world.events('epoch.failed')).toEqual([]);
    await world.certificate('digest-1');
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'control plane unreachable' });
  });

  test('is changed certificates if files change after they are read', async () => {
    const world = await AgentWorld.startServing();
    world.certificateProblem = 'the certificate files changed after they were checked';
    await world.certificate('digest-1');
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'certificates changed' });
    expect(world.events('epoch.failed')).toMatchObject([
      { during: 'reading the certificates', reason: 'the certificate files changed after they were checked' },
    ]);
    expect((await world.requestReadiness()).ready).toBe(true);
  });

  test('is an unwritable directory if its bootstrap cannot be written', async () => {
    const world = await AgentWorld.startServing();
    world.writeProblem = '/etc/istio/proxy: EROFS: read-only file system';
    await world.certificate('digest-1');
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'folder not writable' });
    expect(world.events('epoch.failed')).toMatchObject([
      { during: 'writing the bootstrap', reason: '/etc/istio/proxy: EROFS: read-only file system' },
    ]);
    expect((await world.requestReadiness()).ready).toBe(true);
    world.writeProblem = undefined;
    await world.passTime(200);
    expect(lastDecided(world)).toMatchObject({ name: 'epoch-1', attempt: 2 });
    expect(world.supervisorTags()).toEqual(['beside the serving epoch', 'starting']);
  });

  test('is a rejection if the parent rejects the child', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await rejectChild(world);
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'refused by the parent' });
  });

  test('is a crash if the process crashes', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'died' });
  });

  test('is a missed deadline if the epoch is not live in time', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await world.passTime(20_000);
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'not live in time' });
    await endProcess(world, world.newestProcess(), killedEnd);
    expect(world.events('restart.ended')).toHaveLength(2);
  });

  test.each([
    ['crashed', crashEnd],
    ['ended', { code: 0 }],
  ])('is parent lost if the parent %s during the start', async (_, end) => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.process('epoch-0'), end);
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'parent lost' });
  });

  test('is parent lost if the parent exits on time during the start of a second child', async () => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'parent lost' });
  });

  test.each([1, 2])('is called off after %i SIGTERM', async (signals) => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    for (let signal = 0; signal < signals; signal++) world.signal('SIGTERM');
    expect(lastEnded(world)).toMatchObject({ name: 'epoch-1', outcome: 'called off' });
    expect(world.events('restart.ended')).toHaveLength(2);
  });
});
