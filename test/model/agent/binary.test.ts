/** A replaced Envoy binary is checked, started by a hot restart, and reverted if it does not become live. */
import { describe, expect, test } from 'vitest';
import { type AgentSettings, defaultSettings } from '../../../machines/agent/settings.ts';
import { AgentWorld, oneDirectory } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  killedEnd,
  namesStarted,
  rejectChild,
} from './scenes.ts';

checkEveryWorld();

const binary = { ...defaultSettings.binary, path: '/usr/bin/envoy', first: 'old' };
const otherBinary = { binary: 'new', description: '1.40.0' };

function createServingWorld(settings: Partial<AgentSettings> = {}): Promise<AgentWorld> {
  return AgentWorld.startServing({ binary, ...settings });
}

/** A world in which the new Envoy serves, and its parent drains. */
async function createReplacedWorld(settings: Partial<AgentSettings> = {}): Promise<AgentWorld> {
  const world = await createServingWorld(settings);
  await world.replaceBinary(otherBinary);
  await becomesLive(world);
  return world;
}

describe('a changed Envoy binary', () => {
  test('is started by a hot restart if it is valid and unchanged for 1 s', async () => {
    const world = await createServingWorld();
    expect(world.binaries).toEqual(['old']);
    await world.replaceBinary(otherBinary);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
    expect(world.binaries).toEqual(['old', 'new']);
    expect(world.events('restart.decided').at(-1)).toMatchObject({ reason: 'Envoy replaced', how: 'hot restart' });
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
    await world.passTime(60_000);
    expect(world.events('binary.proven')).toEqual([{ type: 'binary.proven', binary: 'new' }]);
  });

  test('is reported and not started if it is invalid', async () => {
    const world = await createServingWorld();
    await world.replaceBinary({ refused: 'its hot restart version is 11.112' });
    expect(world.events('binary.rejected')).toEqual([
      { type: 'binary.rejected', reason: 'its hot restart version is 11.112' },
    ]);
    expect(world.binaries).toEqual(['old']);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is ignored if its content is the same', async () => {
    const world = await createServingWorld();
    await world.replaceBinary({ binary: 'old', description: '1.39.3' });
    expect(world.events('binary.changed')).toEqual([]);
    expect(world.binaries).toEqual(['old']);
  });

  test('is not used by a certificate restart before it is checked', async () => {
    const world = await createServingWorld();
    world.binary = otherBinary;
    await world.certificate('digest-1');
    expect(world.binaries).toEqual(['old', 'old']);
  });

  test('is started only after an Envoy serves, and a cold start uses the proven binary', async () => {
    const world = new AgentWorld({ binary });
    await world.settle();
    await world.replaceBinary(otherBinary);
    expect(world.binaries).toEqual(['old']);
    await becomesLive(world);
    await world.passTime(1_000);
    expect(world.binaries).toEqual(['old', 'new']);
  });

  test('is started if the previous binary hangs before it was ever live', async () => {
    const world = new AgentWorld({ binary });
    await world.settle();
    await world.replaceBinary(otherBinary);
    await world.passTime(5_000);
    await endProcess(world, world.process('epoch-0'), killedEnd);
    expect(world.binaries).toEqual(['old', 'new']);
    await becomesLive(world);
    // The first binary has no predecessor.
    await endProcess(world, world.process('epoch-0'), crashEnd);
    await world.passTime(200);
    expect(world.binaries).toEqual(['old', 'new', 'new']);
  });

  test('is started if the previous binary exits immediately before it was ever live', async () => {
    const world = new AgentWorld({ binary });
    await world.settle();
    await endProcess(world, world.newestProcess(), { code: 3 });
    await world.replaceBinary(otherBinary);
    await endProcess(world, world.newestProcess(), { code: 3 });
    await world.passTime(400);
    expect(world.binaries.at(-1)).toBe('new');
  });

  test('is started if the previous binary crashed and cannot start again', async () => {
    const world = await createServingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    await world.passTime(200);
    world.binary = otherBinary;
    await world.orderUpgrade();
    expect(world.binaries).toEqual(['old', 'old']);
    await endProcess(world, world.newestProcess(), { code: 3 });
    await world.passTime(400);
    expect(world.binaries).toEqual(['old', 'old', 'new']);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is checked again with doubling delays if a check has no result', async () => {
    const world = await createServingWorld();
    await world.replaceBinary({ unknown: 'it has not answered --version' });
    expect(world.events('binary.rejected')).toHaveLength(1);
    world.binary = otherBinary;
    await world.passTime(1_000);
    expect(world.binaries).toEqual(['old', 'new']);
  });

  test('is checked again if its check has not responded for 2 min', async () => {
    const world = await createServingWorld();
    await world.replaceBinary(undefined);
    await world.passTime(120_000);
    expect(world.events('binary.rejected')[0]?.reason).toContain('did not finish within 120000 ms');
    world.binary = otherBinary;
    await world.passTime(1_000);
    expect(world.binaries.at(-1)).toBe('new');
  });

  test('is checked after 1 min if it changes continuously', async () => {
    const world = await createServingWorld();
    const checks = world.binaryChecks.length;
    for (let ms = 0; ms < 60_000; ms += 500) {
      world.touchBinary();
      await world.passTime(500);
    }
    expect(world.binaryChecks.length).toBe(checks + 1);
  });

  test('is not watched if only a command can start it, but is checked when the command is received', async () => {
    const world = await createServingWorld({ binary: { ...binary, watched: false } });
    expect(world.binaryChecks).toEqual([]);
    world.binary = otherBinary;
    await world.orderUpgrade();
    expect(world.binaries).toEqual(['old', 'new']);
  });

  test('is checked at start, because it can have changed before the watch', async () => {
    const world = new AgentWorld({ binary });
    world.binary = otherBinary;
    await world.settle();
    await becomesLive(world);
    expect(world.binaries).toEqual(['new']);
  });
});

describe('a new Envoy that does not become live', () => {
  test('is given up after one attempt, and a hot restart gives the previous binary the admin interface back', async () => {
    const world = await createServingWorld();
    await world.replaceBinary(otherBinary);
    await endProcess(world, world.newestProcess(), { code: 1, lastOutput: 'no such filter' });
    expect(world.events('binary.withdrawn')).toMatchObject([{ binary: 'new' }]);
    await world.passTime(200);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    expect(world.events('restart.decided').at(-1)).toMatchObject({ reason: 'Envoy put back', epoch: 1 });
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
    await world.passTime(120_000);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
  });

  test('is given up if it times out, and its parent is repaired', async () => {
    const world = await createServingWorld();
    await world.replaceBinary(otherBinary);
    await world.passTime(20_000);
    await endProcess(world, world.newestProcess(), killedEnd);
    await world.passTime(200);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    await rejectChild(world);
    expect(world.repairedBaseIds).toEqual([7]);
    await world.passTime(400);
    await becomesLive(world);
    expect(world.binaries).toEqual(['old', 'new', 'old', 'old']);
  });

  test('causes no restart if it rejects the bootstrap', async () => {
    const world = await createServingWorld();
    world.rejectBootstrap = 'unknown field';
    await world.replaceBinary(otherBinary);
    world.rejectBootstrap = undefined;
    await world.passTime(60_000);
    expect(world.binaries).toEqual(['old', 'new']);
    expect(namesStarted(world)).toEqual(['epoch-0']);
    expect(world.events('binary.withdrawn')).toHaveLength(1);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is retried if the control plane is unreachable', async () => {
    const world = await createServingWorld();
    world.unreachableReason = 'nobody listens';
    await world.replaceBinary(otherBinary);
    world.unreachableReason = undefined;
    await world.passTime(400);
    expect(world.events('binary.withdrawn')).toEqual([]);
    expect(world.binaries).toEqual(['old', 'new', 'new']);
  });

  test('is retried after a command, but not because the same binary is written again', async () => {
    const world = await createServingWorld();
    world.rejectBootstrap = 'unknown field';
    await world.replaceBinary(otherBinary);
    world.rejectBootstrap = undefined;
    await world.replaceBinary(otherBinary);
    expect(world.binaries).toEqual(['old', 'new']);
    await world.orderUpgrade();
    expect(world.binaries).toEqual(['old', 'new', 'new']);
  });

  test('is followed by a restart with the previous binary if the certificate changes at the same time', async () => {
    const world = await createServingWorld();
    world.rejectBootstrap = 'unknown field';
    await world.replaceBinary(otherBinary);
    world.changeFiles('digest-1');
    world.rejectBootstrap = undefined;
    await world.passTime(10_000);
    expect(world.binaries.at(-1)).toBe('old');
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
  });
});

describe('a new Envoy that exits soon after it was live', () => {
  test('is replaced immediately by the previous binary, with the same epoch number while its parent drains', async () => {
    const world = await createReplacedWorld();
    const at = world.clock.now();
    await endProcess(world, world.process('epoch-1'), crashEnd);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1']);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    expect(world.clock.now()).toBe(at);
    await becomesLive(world);
    expect(world.supervisorTags()).toEqual(['settled']);
  });

  test('is replaced immediately by epoch 0 of the previous binary if its parent has exited', async () => {
    const world = await createReplacedWorld({ healthyMs: 120_000 });
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    const at = world.clock.now();
    await endProcess(world, world.process('epoch-1'), crashEnd);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    expect(world.newestProcess()).toMatchObject({ name: 'epoch-0', baseId: 7 });
    expect(world.clock.now()).toBe(at);
  });

  test('is restarted with the same binary after it has served for 1 min, because the binary is proven', async () => {
    const world = await createReplacedWorld();
    await world.passTime(60_000);
    await endProcess(world, world.process('epoch-0'));
    await endProcess(world, world.process('epoch-1'), crashEnd);
    await world.passTime(200);
    expect(world.binaries).toEqual(['old', 'new', 'new']);
    expect(world.events('binary.withdrawn')).toEqual([]);
  });

  test('is replaced by the previous binary even if it is a later epoch for a certificate', async () => {
    const world = await createReplacedWorld({ parentShutdownMs: 2_000 });
    await world.passTime(2_000);
    await endProcess(world, world.process('epoch-0'));
    await world.certificate('digest-1');
    await becomesLive(world);
    await endProcess(world, world.process('epoch-2'), crashEnd);
    expect(world.binaries).toEqual(['old', 'new', 'new', 'old']);
  });
});

test('a previous binary that a command restores is retried as often as any other', async () => {
  const world = await createReplacedWorld({ parentShutdownMs: 2_000 });
  await world.passTime(2_000);
  await endProcess(world, world.process('epoch-0'));
  await world.replaceBinary({ binary: 'old', description: '1.39.3' });
  await endProcess(world, world.newestProcess(), { code: 1 });
  await world.passTime(200);
  expect(world.binaries).toEqual(['old', 'new', 'old', 'old']);
  expect(world.events('binary.withdrawn')).toEqual([]);
});

test('a new binary is started cold if hot restarts are disabled, and the previous binary is started when it exits', async () => {
  const world = await createServingWorld({ hotRestart: false });
  await world.replaceBinary(otherBinary);
  await world.passTime(5_000);
  await endProcess(world, world.process('epoch-0'), killedEnd);
  await world.passTime(0);
  expect(world.binaries).toEqual(['old', 'new']);
  await becomesLive(world);
  await endProcess(world, world.newestProcess(), crashEnd);
  expect(world.binaries).toEqual(['old', 'new', 'old']);
});

test("a draining parent's exit does not count as a failure of the new Envoy", async () => {
  const world = await drainingWorld({ binary, watch: oneDirectory, parentShutdownMs: 2_000 });
  await world.passTime(2_000);
  await endProcess(world, world.process('epoch-0'));
  await world.replaceBinary(otherBinary);
  await becomesLive(world);
  await endProcess(world, world.process('epoch-1'), crashEnd);
  expect(world.events('binary.withdrawn')).toEqual([]);
});

test('an upgrade command is ignored if the path of Envoy is unknown', async () => {
  const world = await AgentWorld.startServing();
  await world.orderUpgrade();
  expect(world.binaryChecks).toEqual([]);
});
