/** A newer configuration arrives while an Envoy starts and none serves: an Envoy that waits forever must not block it. */
import { describe, expect, test } from 'vitest';
import { defaultSettings } from '../../../machines/agent/settings.ts';
import { AgentWorld, oneDirectory } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashed,
  drainingWorld,
  endProcess,
  killed,
  namesStarted,
  replacingWorld,
} from './scenes.ts';

checkEveryWorld();

const day = 86_400_000;

/** Lets the killed newest Envoy exit, and waits for the next one. */
async function isFollowed(world: AgentWorld): Promise<void> {
  expect(world.newest().signals).toEqual(['SIGKILL']);
  await endProcess(world, world.newest(), killed);
  await world.pass(0);
}

describe('an Envoy that waits for a missing dependency while no Envoy serves', () => {
  test('is replaced by an Envoy with the corrected configuration, even after a day', async () => {
    const world = new AgentWorld();
    await world.pass(day);
    expect(namesStarted(world)).toEqual(['epoch-0']);
    world.changeFiles('the fix');
    await world.pass(10_000 + 5_000);
    await isFollowed(world);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-0']);
    expect(world.events('restart.ended')).toMatchObject([{ name: 'epoch-0', outcome: 'called off' }]);
    await becomesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('is replaced on SIGHUP', async () => {
    const world = new AgentWorld();
    await world.pass(day);
    world.signal('SIGHUP');
    await world.pass(5_000);
    await isFollowed(world);
    await becomesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-0']);
  });

  test('does not consume the retry budget', async () => {
    const world = new AgentWorld({ retry: { ...defaultSettings.retry, budget: 0 } });
    await world.pass(day);
    for (const outdatedLimitMs of [5_000, 10_000, 20_000]) {
      world.signal('SIGHUP');
      await world.pass(outdatedLimitMs);
      await isFollowed(world);
    }
    expect(world.output()).toBeUndefined();
    expect(world.started).toHaveLength(4);
    await becomesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('is replaced by an Envoy with the other base ID if SIGKILL does not end it', async () => {
    const world = new AgentWorld();
    await world.pass(day);
    world.signal('SIGHUP');
    await world.pass(5_000 + 10_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-0b']);
    await becomesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
    expect(world.adminOf).toBe(8);
  });

  test('ends the agent with a reason if it cannot be killed and neither can the Envoy with the other base ID', async () => {
    const world = new AgentWorld();
    await world.pass(day);
    for (const _ of [1, 2]) {
      world.signal('SIGHUP');
      await world.pass(60_000);
    }
    expect(world.output()).toMatchObject({
      exitCode: 1,
      trouble: [
        'agent exits: Envoy cannot be kept running',
        expect.stringMatching(/^epoch-0: SIGKILL/),
        expect.stringMatching(/^epoch-0b: SIGKILL/),
      ],
    });
  });
});

describe('an Envoy that is about to be live when a newer configuration is received', () => {
  test('becomes live, and a hot restart follows', async () => {
    const world = new AgentWorld();
    await world.settle();
    world.signal('SIGHUP');
    await world.pass(50);
    await becomesLive(world);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
    expect(world.process('epoch-0').signals).toEqual([]);
  });

  test('is probed a last time before it is cancelled', async () => {
    const world = new AgentWorld();
    world.probeResult = 'live';
    await world.settle();
    world.signal('SIGHUP');
    await world.pass(5_000);
    expect(world.probes).toEqual(['0@7']);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
    expect(world.process('epoch-0').signals).toEqual([]);
  });

  test('is cancelled 1 s later if it does not respond to the last probe', async () => {
    const world = new AgentWorld();
    world.probeResult = 'no answer';
    await world.settle();
    world.signal('SIGHUP');
    await world.pass(5_999);
    expect(world.newest().signals).toEqual([]);
    await world.pass(1);
    expect(world.newest().signals).toEqual(['SIGKILL']);
  });
});

test('successive changes cancel a start only once', async () => {
  const world = new AgentWorld();
  await world.settle();
  for (const _ of [1, 2, 3, 4, 5]) {
    world.signal('SIGHUP');
    await world.pass(1_000);
  }
  await isFollowed(world);
  await world.pass(day);
  expect(world.started).toHaveLength(2);
});

test('each start has twice the time of the previous one during constant changes, so that a start of 18 s becomes live', async () => {
  const world = new AgentWorld();
  await world.settle();
  let age = 0;
  for (let second = 0; second < 120 && !world.supervisorIs().includes('settled'); second++) {
    world.signal('SIGHUP');
    const startedBefore = world.started.length;
    await world.pass(1_000);
    if (world.newest().signals.length > 0) await endProcess(world, world.newest(), killed);
    age = world.started.length > startedBefore ? 0 : age + 1;
    if (age === 18) {
      await becomesLive(world);
      break;
    }
  }
  expect(world.events('epoch.live')).toHaveLength(1);
  expect(world.started.length).toBeLessThan(6);
});

test('a reverted change cancels nothing', async () => {
  const world = new AgentWorld({ watch: { ...oneDirectory, delayMs: 1_000 } });
  await world.settle();
  world.changeFiles('digest-1');
  await world.pass(1_000);
  expect(world.supervisorIs()).toEqual(['no serving epoch', 'outdated', 'starting']);
  world.changeFiles('digest-0');
  await world.pass(1_000);
  expect(world.supervisorIs()).toEqual(['no serving epoch', 'starting']);
  await world.pass(day);
  expect(world.started).toHaveLength(1);
});

test('a replacement without an epoch to replace is cancelled for a newer configuration too', async () => {
  const world = await replacingWorld();
  await endProcess(world, world.process('epoch-0'), crashed);
  expect(world.supervisorIs()).toEqual(['no serving epoch', 'starting']);
  world.signal('SIGHUP');
  await world.pass(5_000);
  await isFollowed(world);
  await becomesLive(world);
  expect(world.supervisorIs()).toEqual(['settled']);
});

test('a child that needs its parent is not cancelled, because its parent exits in time or both are stopped', async () => {
  const world = await drainingWorld();
  await endProcess(world, world.newest(), crashed);
  await world.pass(1_000);
  expect(world.supervisorIs()).toEqual(['no serving epoch', 'starting']);
  world.signal('SIGHUP');
  await world.pass(10_000);
  expect(world.newest().signals).toEqual([]);
  await world.pass(60_000);
  expect(world.newest().signals).toEqual(['SIGKILL']);
});

test('a repair that never ends is skipped after a timeout', async () => {
  const world = await AgentWorld.serving();
  world.repairHangs = true;
  await world.certificate('digest-1');
  await endProcess(world, world.newest(), { code: 1, refusedByParent: true });
  expect(world.supervisorIs()).toEqual(['repairing']);
  await world.pass(20_200);
  expect(namesStarted(world).at(-1)).toBe('epoch-0b');
});

describe('base IDs that are not released', () => {
  const releasing = async (): Promise<AgentWorld> => {
    const world = await AgentWorld.serving();
    world.releaseHangs = true;
    world.signal('SIGTERM');
    await world.pass(5_000);
    await endProcess(world, world.newest());
    expect(world.agent.getSnapshot().value).toBe('releasing base ids');
    return world;
  };

  test('delay a stop for no longer than a killed Envoy needs to exit', async () => {
    const world = await releasing();
    await world.pass(12_000);
    expect(world.output()).toMatchObject({ exitCode: 1, trouble: [expect.stringContaining('did not exit within')] });
  });

  test('do not delay a second SIGTERM', async () => {
    const world = await releasing();
    world.signal('SIGTERM');
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  });
});
