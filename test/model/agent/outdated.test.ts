/** A newer configuration arrives while an Envoy starts and none serves: an Envoy that waits forever must not block it. */
import { describe, expect, test } from 'vitest';
import { defaultSettings } from '../../../machines/agent/settings.ts';
import { AgentWorld, oneDirectory } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  killedEnd,
  namesStarted,
  replacingWorld,
} from './scenes.ts';

checkEveryWorld();

const day = 86_400_000;

/** Lets the killed newest Envoy exit, and waits for the next one. */
async function isFollowed(world: AgentWorld): Promise<void> {
  expect(world.newestProcess().signals).toEqual(['SIGKILL']);
  await endProcess(world, world.newestProcess(), killedEnd);
  await world.passTime(0);
}

describe('an Envoy that waits for a missing dependency while no Envoy serves', () => {
  test('is replaced by an Envoy with the corrected configuration, even after a day', async () => {
    const world = new AgentWorld();
    await world.passTime(day);
    expect(namesStarted(world)).toEqual(['epoch-0']);
    world.changeFiles('the fix');
    await world.passTime(10_000 + 5_000);
    await isFollowed(world);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-0']);
    expect(world.events('restart.ended')).toMatchObject([{ name: 'epoch-0', outcome: 'called off' }]);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is replaced on SIGHUP', async () => {
    const world = new AgentWorld();
    await world.passTime(day);
    world.signal('SIGHUP');
    await world.passTime(5_000);
    await isFollowed(world);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-0']);
  });

  test('does not consume the retry budget', async () => {
    const world = new AgentWorld({ retry: { ...defaultSettings.retry, budget: 0 } });
    await world.passTime(day);
    for (const outdatedLimitMs of [5_000, 10_000, 20_000]) {
      world.signal('SIGHUP');
      await world.passTime(outdatedLimitMs);
      await isFollowed(world);
    }
    expect(world.output()).toBeUndefined();
    expect(world.startedProcesses).toHaveLength(4);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is replaced by an Envoy with the other base ID if SIGKILL does not end it', async () => {
    const world = new AgentWorld();
    await world.passTime(day);
    world.signal('SIGHUP');
    await world.passTime(5_000 + 10_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-0b']);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
    expect(world.adminOf).toBe(8);
  });

  test('ends the agent with a reason if it cannot be killed and neither can the Envoy with the other base ID', async () => {
    const world = new AgentWorld();
    await world.passTime(day);
    for (const _ of [1, 2]) {
      world.signal('SIGHUP');
      await world.passTime(60_000);
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
    await world.passTime(50);
    await becomesLive(world);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
    expect(world.process('epoch-0').signals).toEqual([]);
  });

  test('is probed a last time before it is cancelled', async () => {
    const world = new AgentWorld();
    world.probeResult = 'live';
    await world.settle();
    world.signal('SIGHUP');
    await world.passTime(5_000);
    expect(world.probes).toEqual(['0@7']);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
    expect(world.process('epoch-0').signals).toEqual([]);
  });

  test('is cancelled 1 s later if it does not respond to the last probe', async () => {
    const world = new AgentWorld();
    world.probeResult = 'no answer';
    await world.settle();
    world.signal('SIGHUP');
    await world.passTime(5_999);
    expect(world.newestProcess().signals).toEqual([]);
    await world.passTime(1);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
  });
});

test('successive changes cancel a start only once', async () => {
  const world = new AgentWorld();
  await world.settle();
  for (const _ of [1, 2, 3, 4, 5]) {
    world.signal('SIGHUP');
    await world.passTime(1_000);
  }
  await isFollowed(world);
  await world.passTime(day);
  expect(world.startedProcesses).toHaveLength(2);
});

test('each start has twice the time of the previous one during constant changes, so that a start of 18 s becomes live', async () => {
  const world = new AgentWorld();
  await world.settle();
  let age = 0;
  for (let second = 0; second < 120 && !world.supervisorTags().includes('settled'); second++) {
    world.signal('SIGHUP');
    const startedBefore = world.startedProcesses.length;
    await world.passTime(1_000);
    if (world.newestProcess().signals.length > 0) await endProcess(world, world.newestProcess(), killedEnd);
    age = world.startedProcesses.length > startedBefore ? 0 : age + 1;
    if (age === 18) {
      await becomesLive(world);
      break;
    }
  }
  expect(world.events('epoch.live')).toHaveLength(1);
  expect(world.startedProcesses.length).toBeLessThan(6);
});

test('a reverted change cancels nothing', async () => {
  const world = new AgentWorld({ watch: { ...oneDirectory, delayMs: 1_000 } });
  await world.settle();
  world.changeFiles('digest-1');
  await world.passTime(1_000);
  expect(world.supervisorTags()).toEqual(['no serving epoch', 'outdated', 'starting']);
  world.changeFiles('digest-0');
  await world.passTime(1_000);
  expect(world.supervisorTags()).toEqual(['no serving epoch', 'starting']);
  await world.passTime(day);
  expect(world.startedProcesses).toHaveLength(1);
});

test('a replacement without an epoch to replace is cancelled for a newer configuration too', async () => {
  const world = await replacingWorld();
  await endProcess(world, world.process('epoch-0'), crashEnd);
  expect(world.supervisorTags()).toEqual(['no serving epoch', 'starting']);
  world.signal('SIGHUP');
  await world.passTime(5_000);
  await isFollowed(world);
  await becomesLive(world);
  expect(world.supervisorTags()).toEqual(['settled']);
});

test('a child that needs its parent is not cancelled, because its parent exits in time or both are stopped', async () => {
  const world = await drainingWorld();
  await endProcess(world, world.newestProcess(), crashEnd);
  await world.passTime(1_000);
  expect(world.supervisorTags()).toEqual(['no serving epoch', 'starting']);
  world.signal('SIGHUP');
  await world.passTime(10_000);
  expect(world.newestProcess().signals).toEqual([]);
  await world.passTime(60_000);
  expect(world.newestProcess().signals).toEqual(['SIGKILL']);
});

test('a repair that never ends is skipped after a timeout', async () => {
  const world = await AgentWorld.startServing();
  world.repairHangs = true;
  await world.certificate('digest-1');
  await endProcess(world, world.newestProcess(), { code: 1, refusedByParent: true });
  expect(world.supervisorTags()).toEqual(['repairing']);
  await world.passTime(20_200);
  expect(namesStarted(world).at(-1)).toBe('epoch-0b');
});

describe('base IDs that are not released', () => {
  const releasing = async (): Promise<AgentWorld> => {
    const world = await AgentWorld.startServing();
    world.releaseHangs = true;
    world.signal('SIGTERM');
    await world.passTime(5_000);
    await endProcess(world, world.newestProcess());
    expect(world.agent.getSnapshot().value).toBe('releasing base ids');
    return world;
  };

  test('delay a stop for no longer than a killed Envoy needs to exit', async () => {
    const world = await releasing();
    await world.passTime(12_000);
    expect(world.output()).toMatchObject({ exitCode: 1, trouble: [expect.stringContaining('did not exit within')] });
  });

  test('do not delay a second SIGTERM', async () => {
    const world = await releasing();
    world.signal('SIGTERM');
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  });
});
