import { expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { checkEveryWorld, ends, epochsStarted, goesLive } from './scenes.ts';

checkEveryWorld();

test('the watcher starts Envoy at once, whatever the files are', async () => {
  const world = new AgentWorld();
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.clock.now()).toBe(0);
  expect(world.prepared).toMatchObject([{ epoch: 0, baseId: 7, validate: true }]);
  expect(world.newest().configFile).toBe('envoy-rev0.json');
});

test('an Envoy that waits for the control plane while nobody serves is left waiting, and says why', async () => {
  const world = new AgentWorld();
  await world.pass(5_000);
  world.newest().waits('no xDS stream is open');
  await world.pass(3_600_000);
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.newest().signals).toEqual([]);
  expect(world.events('epoch.waiting')).toEqual([
    { type: 'epoch.waiting', name: 'epoch-0', epoch: 0, reason: 'no xDS stream is open' },
  ]);
  expect(await world.ask()).toEqual({ ready: false, reason: 'no Envoy has served yet' });
});

test('a refused bootstrap is tried again, and never becomes a process', async () => {
  const world = new AgentWorld();
  world.rejectBootstrap = 'envoy-rev0.json: no such field: bogus';
  await world.settle();
  expect(world.supervisorIs()).toEqual(['backing off']);
  expect(world.events('epoch.failed')).toEqual([
    {
      type: 'epoch.failed',
      name: 'epoch-0',
      epoch: 0,
      during: 'preparing',
      code: null,
      signal: null,
      reason: 'envoy-rev0.json: no such field: bogus',
      outOfMemory: false,
      refusedByParent: false,
    },
  ]);
  world.rejectBootstrap = undefined;
  await world.pass(200);
  expect(epochsStarted(world)).toEqual([0]);
});

test('an Envoy that the operating system cannot start is tried again', async () => {
  const world = new AgentWorld({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
  world.spawnAnswer = 'spawn envoy ENOENT';
  await world.pass(200);
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: ['Envoy could not be kept running', ...Array(2).fill('epoch-0, starting: spawn envoy ENOENT')],
  });
  expect(world.cleanedUp).toEqual(['epoch-0', 'epoch-0']);
});

test('a certificate that changes before the first Envoy is live waits for it, and is the next one’s', async () => {
  const world = new AgentWorld();
  await world.settle();
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0]);
  await goesLive(world);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('an agent that gets no base id ends, and starts nothing', async () => {
  const world = new AgentWorld();
  world.claimAnswer = 'no base id is free';
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 1, trouble: ['no base id is free'] });
  expect(world.supervisorIs()).toEqual(['gone']);
  expect(world.released).toBeUndefined();
});

test('a status port that is taken ends the agent before Envoy is started', async () => {
  const world = new AgentWorld();
  world.httpAnswer = 'port 15020 is in use';
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 1, trouble: ['port 15020 is in use'] });
  expect(world.started).toEqual([]);
  expect(world.released).toEqual([7, 8]);
});

test('without a status port the agent does without', async () => {
  const world = await AgentWorld.serving({ statusPort: 0 });
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('status.listening')).toEqual([{ type: 'status.listening', port: 0 }]);
  expect(world.records.some((r) => r.kind === 'spawn' && r.actor === 'status/http')).toBe(false);
});

test('base ids that cannot be given back do not make an ordered end a failure', async () => {
  const world = await AgentWorld.serving();
  world.releaseAnswer = 'EPERM';
  world.signal('SIGTERM');
  await world.settle();
  await ends(world, world.newest());
  expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  expect(world.released).toEqual([7, 8]);
});
