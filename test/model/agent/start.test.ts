import { expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { becomesLive, checkEveryWorld, endProcess, epochsStarted } from './scenes.ts';

checkEveryWorld();

test('Envoy is started immediately, whatever state the certificate files are in', async () => {
  const world = new AgentWorld();
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.clock.now()).toBe(0);
  expect(world.preparedEpochs).toMatchObject([{ epoch: 0, baseId: 7, validate: true }]);
  expect(world.newestProcess().configFile).toBe('envoy-rev0.json');
});

test('an Envoy that waits for the control plane keeps waiting if no Envoy serves, and reports the reason', async () => {
  const world = new AgentWorld();
  await world.settle();
  world.newestProcess().reportWait('no xDS stream is open');
  await world.passTime(4_999);
  expect(world.events('epoch.waiting')).toEqual([]);
  await world.passTime(1);
  expect(world.events('epoch.waiting')).toEqual([
    { type: 'epoch.waiting', name: 'epoch-0', epoch: 0, reason: 'no xDS stream is open' },
  ]);
  world.newestProcess().reportWait('the control plane has not sent all');
  await world.passTime(29_999);
  expect(world.events('epoch.waiting')).toHaveLength(1);
  await world.passTime(1);
  expect(world.events('epoch.waiting').slice(1)).toMatchObject([{ reason: 'the control plane has not sent all' }]);
  await world.passTime(3_600_000);
  expect(world.events('epoch.waiting')).toHaveLength(122);
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.newestProcess().signals).toEqual([]);
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'no Envoy has served yet' });
});

test('a live Envoy with a rejected listener is held back for 25 s, then probed a last time and accepted', async () => {
  const world = new AgentWorld();
  await world.settle();
  world.probeResult = 'live';
  world.newestProcess().reportMissingListener('LIVE without tls');
  await world.settle();
  expect(world.events('epoch.waiting')).toMatchObject([{ reason: 'LIVE without tls' }]);
  await world.passTime(24_999);
  expect(world.probes).toEqual([]);
  expect(world.events('epoch.live')).toEqual([]);
  await world.passTime(1);
  expect(world.probes).toEqual(['0@7 as it is']);
  expect(world.supervisorTags()).toEqual(['settled']);
});

test('an Envoy with a missing listener is live as soon as it gets the listener, and has more time if it stops being live', async () => {
  const gets = new AgentWorld();
  await gets.settle();
  gets.newestProcess().reportMissingListener('LIVE without tls');
  await gets.passTime(10_000);
  gets.newestProcess().becomeLive();
  await gets.settle();
  expect(gets.supervisorTags()).toEqual(['settled']);

  const lostWorld = new AgentWorld();
  await lostWorld.settle();
  lostWorld.probeResult = 'not live';
  lostWorld.newestProcess().reportMissingListener('LIVE without tls');
  await lostWorld.passTime(25_000);
  expect(lostWorld.events('epoch.not-live')).toHaveLength(1);
  expect(lostWorld.supervisorTags()).toEqual(['no serving epoch', 'starting']);
  await lostWorld.passTime(30_000);
  expect(lostWorld.events('epoch.waiting')).toHaveLength(2);
  lostWorld.newestProcess().becomeLive();
  await lostWorld.settle();
  expect(lostWorld.supervisorTags()).toEqual(['settled']);
});

test('an epoch whose preparation does not respond is given up and retried after 40 s', async () => {
  const world = new AgentWorld();
  world.preparationHangs = true;
  await world.passTime(39_999);
  expect(world.events('epoch.failed')).toEqual([]);
  await world.passTime(1);
  expect(world.events('epoch.failed')).toMatchObject([
    { during: 'preparing', reason: expect.stringContaining('bootstrap not ready after 40000 ms') },
  ]);
  expect(world.supervisorTags()).toEqual(['backing off']);
  world.preparationHangs = false;
  await world.passTime(1_000);
  expect(epochsStarted(world)).toEqual([0]);
});

test('a rejected bootstrap is retried without starting a process', async () => {
  const world = new AgentWorld();
  world.rejectBootstrap = 'envoy-rev0.json: no such field: bogus';
  await world.settle();
  expect(world.supervisorTags()).toEqual(['backing off']);
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
  await world.passTime(200);
  expect(epochsStarted(world)).toEqual([0]);
});

test('an Envoy is retried if the operating system cannot start it', async () => {
  const world = new AgentWorld({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
  world.spawnError = 'spawn envoy ENOENT';
  await world.passTime(200);
  expect(world.output()).toEqual({
    exitCode: 1,
    trouble: ['agent exits: Envoy cannot be kept running', ...Array(2).fill('epoch-0, starting: spawn envoy ENOENT')],
  });
  expect(world.cleanedUp).toEqual(['epoch-0', 'epoch-0']);
});

test('a certificate that changes before the first Envoy is live waits, and the next Envoy uses it', async () => {
  const world = new AgentWorld();
  await world.settle();
  await world.certificate('digest-1');
  expect(epochsStarted(world)).toEqual([0]);
  await becomesLive(world);
  expect(epochsStarted(world)).toEqual([0, 1]);
});

test('an agent without a free base ID exits without starting Envoy', async () => {
  const world = new AgentWorld();
  world.claimError = 'no base id is free';
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 1, trouble: ['no base id is free'] });
  expect(world.supervisorTags()).toEqual(['gone']);
  expect(world.releasedBaseIds).toBeUndefined();
});

test('a status port that is in use ends the agent before Envoy is started', async () => {
  const world = new AgentWorld();
  world.httpError = 'port 15020 is in use';
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 1, trouble: ['port 15020 is in use'] });
  expect(world.startedProcesses).toEqual([]);
  expect(world.releasedBaseIds).toEqual([7, 8]);
});

test('an agent without a status port has no status server', async () => {
  const world = await AgentWorld.startServing({ statusPort: 0 });
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('status.listening')).toEqual([{ type: 'status.listening', port: 0 }]);
  expect(world.records.some((r) => r.kind === 'spawn' && r.actor === 'status/http')).toBe(false);
});

test('base IDs that cannot be released do not make a requested stop fail', async () => {
  const world = await AgentWorld.startServing();
  world.releaseError = 'EPERM';
  world.signal('SIGTERM');
  await world.settle();
  await endProcess(world, world.newestProcess());
  expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  expect(world.releasedBaseIds).toEqual([7, 8]);
});
