/** Another Envoy at the path of its binary: checked, taken up by a hot restart, taken back where it does not live (spec/in-place.md §1). */
import { describe, expect, test } from 'vitest';
import { type AgentSettings, defaultSettings } from '../../../machines/agent/settings.ts';
import { AgentWorld, oneDirectory } from '../../simulation/agent-world.ts';
import { checkEveryWorld, crashed, ends, goesLive, handedOver, killed, namesStarted, refuse } from './scenes.ts';

checkEveryWorld();

const binary = { ...defaultSettings.binary, path: '/usr/bin/envoy', first: 'old' };
const other = { binary: 'new', description: '1.40.0' };

function serving(settings: Partial<AgentSettings> = {}): Promise<AgentWorld> {
  return AgentWorld.serving({ binary, ...settings });
}

/** A world in which the new Envoy serves, and its parent drains. */
async function replaced(settings: Partial<AgentSettings> = {}): Promise<AgentWorld> {
  const world = await serving(settings);
  await world.replaceBinary(other);
  await goesLive(world);
  return world;
}

describe('another file at the path', () => {
  test('is taken up by a hot restart when it has rested for a second and fits', async () => {
    const world = await serving();
    expect(world.binaries).toEqual(['old']);
    await world.replaceBinary(other);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
    expect(world.binaries).toEqual(['old', 'new']);
    expect(world.events('restart.decided').at(-1)).toMatchObject({ reason: 'Envoy replaced', how: 'hot restart' });
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
    await world.pass(60_000);
    expect(world.events('binary.proven')).toEqual([{ type: 'binary.proven', binary: 'new' }]);
  });

  test('that does not fit changes nothing, and is told with its reason', async () => {
    const world = await serving();
    await world.replaceBinary({ refused: 'its hot restart version is 11.112' });
    expect(world.events('binary.rejected')).toEqual([
      { type: 'binary.rejected', reason: 'its hot restart version is 11.112' },
    ]);
    expect(world.binaries).toEqual(['old']);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('that is the same one is nothing new', async () => {
    const world = await serving();
    await world.replaceBinary({ binary: 'old', description: '1.39.3' });
    expect(world.events('binary.changed')).toEqual([]);
    expect(world.binaries).toEqual(['old']);
  });

  test('is no concern of a restart for a certificate while nobody has checked it', async () => {
    const world = await serving();
    world.binary = other;
    await world.certificate('digest-1');
    expect(world.binaries).toEqual(['old', 'old']);
  });

  test('waits until an Envoy serves: a start from nothing is made with what has proven itself', async () => {
    const world = new AgentWorld({ binary });
    await world.settle();
    await world.replaceBinary(other);
    expect(world.binaries).toEqual(['old']);
    await goesLive(world);
    await world.pass(1_000);
    expect(world.binaries).toEqual(['old', 'new']);
  });

  test('is started when the first one, which was never live, hangs', async () => {
    const world = new AgentWorld({ binary });
    await world.settle();
    await world.replaceBinary(other);
    await world.pass(5_000);
    await ends(world, world.process('epoch-0'), killed);
    expect(world.binaries).toEqual(['old', 'new']);
    await goesLive(world);
    // It is the first that ever was: there is nobody to go back to.
    await ends(world, world.process('epoch-0'), crashed);
    await world.pass(200);
    expect(world.binaries).toEqual(['old', 'new', 'new']);
  });

  test('is started when the first one, which was never live, exits at once', async () => {
    const world = new AgentWorld({ binary });
    await world.settle();
    await ends(world, world.newest(), { code: 3 });
    await world.replaceBinary(other);
    await ends(world, world.newest(), { code: 3 });
    await world.pass(400);
    expect(world.binaries.at(-1)).toBe('new');
  });

  test('is started when the one before it crashed, and does not even start any more', async () => {
    const world = await serving();
    await ends(world, world.newest(), crashed);
    await world.pass(200);
    world.binary = other;
    await world.orderUpgrade();
    expect(world.binaries).toEqual(['old', 'old']);
    await ends(world, world.newest(), { code: 3 });
    await world.pass(400);
    expect(world.binaries).toEqual(['old', 'old', 'new']);
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('is asked for again when nobody could say whether it fits, after pauses that double', async () => {
    const world = await serving();
    await world.replaceBinary({ unknown: 'it has not answered --version' });
    expect(world.events('binary.rejected')).toHaveLength(1);
    world.binary = other;
    await world.pass(1_000);
    expect(world.binaries).toEqual(['old', 'new']);
  });

  test('whose check is never answered is given up after two minutes, and asked again', async () => {
    const world = await serving();
    await world.replaceBinary(undefined);
    await world.pass(120_000);
    expect(world.events('binary.rejected')[0]?.reason).toContain('did not finish within 120000 ms');
    world.binary = other;
    await world.pass(1_000);
    expect(world.binaries.at(-1)).toBe('new');
  });

  test('that never rests is looked at after a minute', async () => {
    const world = await serving();
    const checks = world.binaryChecks.length;
    for (let ms = 0; ms < 60_000; ms += 500) {
      world.touchBinary();
      await world.pass(500);
    }
    expect(world.binaryChecks.length).toBe(checks + 1);
  });

  test('is not watched where an order is wanted, and looked at then', async () => {
    const world = await serving({ binary: { ...binary, watched: false } });
    expect(world.binaryChecks).toEqual([]);
    world.binary = other;
    await world.orderUpgrade();
    expect(world.binaries).toEqual(['old', 'new']);
  });

  test('is looked at at the start: it may have changed before it was watched', async () => {
    const world = new AgentWorld({ binary });
    world.binary = other;
    await world.settle();
    await goesLive(world);
    expect(world.binaries).toEqual(['new']);
  });
});

describe('a new Envoy that does not become live', () => {
  test('is given up at its first try: the old one serves on, and gets its admin interface back by a hot restart', async () => {
    const world = await serving();
    await world.replaceBinary(other);
    await ends(world, world.newest(), { code: 1, lastWords: 'no such filter' });
    expect(world.events('binary.withdrawn')).toMatchObject([{ binary: 'new' }]);
    await world.pass(200);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    expect(world.events('restart.decided').at(-1)).toMatchObject({ reason: 'Envoy put back', epoch: 1 });
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
    await world.pass(120_000);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
  });

  test('in time is given up likewise, and its parent is repaired', async () => {
    const world = await serving();
    await world.replaceBinary(other);
    await world.pass(20_000);
    await ends(world, world.newest(), killed);
    await world.pass(200);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    await refuse(world);
    expect(world.repaired).toEqual([7]);
    await world.pass(400);
    await goesLive(world);
    expect(world.binaries).toEqual(['old', 'new', 'old', 'old']);
  });

  test('because it refuses the bootstrap costs nothing: nobody is restarted', async () => {
    const world = await serving();
    world.rejectBootstrap = 'unknown field';
    await world.replaceBinary(other);
    world.rejectBootstrap = undefined;
    await world.pass(60_000);
    expect(world.binaries).toEqual(['old', 'new']);
    expect(namesStarted(world)).toEqual(['epoch-0']);
    expect(world.events('binary.withdrawn')).toHaveLength(1);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('for want of a control plane is not to blame: it is tried again', async () => {
    const world = await serving();
    world.unreachable = 'nobody listens';
    await world.replaceBinary(other);
    world.unreachable = undefined;
    await world.pass(400);
    expect(world.events('binary.withdrawn')).toEqual([]);
    expect(world.binaries).toEqual(['old', 'new', 'new']);
  });

  test('is tried again when it is ordered, or when it is another file', async () => {
    const world = await serving();
    world.rejectBootstrap = 'unknown field';
    await world.replaceBinary(other);
    world.rejectBootstrap = undefined;
    await world.replaceBinary(other);
    expect(world.binaries).toEqual(['old', 'new']);
    await world.orderUpgrade();
    expect(world.binaries).toEqual(['old', 'new', 'new']);
  });

  test('for a certificate that came with it leaves the certificate wanted', async () => {
    const world = await serving();
    world.rejectBootstrap = 'unknown field';
    await world.replaceBinary(other);
    world.changeFiles('digest-1');
    world.rejectBootstrap = undefined;
    await world.pass(10_000);
    expect(world.binaries.at(-1)).toBe('old');
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1']);
  });
});

describe('a new Envoy that dies soon', () => {
  test('is followed at once by the old one, under the same number while its parent drains', async () => {
    const world = await replaced();
    const at = world.clock.now();
    await ends(world, world.process('epoch-1'), crashed);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1']);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    expect(world.clock.now()).toBe(at);
    await goesLive(world);
    expect(world.supervisorIs()).toEqual(['settled']);
  });

  test('when its parent has gone is followed at once by epoch 0 of the old one', async () => {
    const world = await replaced({ healthyMs: 120_000 });
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    const at = world.clock.now();
    await ends(world, world.process('epoch-1'), crashed);
    expect(world.binaries).toEqual(['old', 'new', 'old']);
    expect(world.newest()).toMatchObject({ name: 'epoch-0', baseId: 7 });
    expect(world.clock.now()).toBe(at);
  });

  test('after it has served for a minute is started again: it is the proven one', async () => {
    const world = await replaced();
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    await ends(world, world.process('epoch-1'), crashed);
    await world.pass(200);
    expect(world.binaries).toEqual(['old', 'new', 'new']);
    expect(world.events('binary.withdrawn')).toEqual([]);
  });

  test('also as a later epoch for a certificate', async () => {
    const world = await replaced({ parentShutdownMs: 2_000 });
    await world.pass(2_000);
    await ends(world, world.process('epoch-0'));
    await world.certificate('digest-1');
    await goesLive(world);
    await ends(world, world.process('epoch-2'), crashed);
    expect(world.binaries).toEqual(['old', 'new', 'new', 'old']);
  });
});

test('an Envoy that is ordered back is no new one: it is tried as often as any', async () => {
  const world = await replaced({ parentShutdownMs: 2_000 });
  await world.pass(2_000);
  await ends(world, world.process('epoch-0'));
  await world.replaceBinary({ binary: 'old', description: '1.39.3' });
  await ends(world, world.newest(), { code: 1 });
  await world.pass(200);
  expect(world.binaries).toEqual(['old', 'new', 'old', 'old']);
  expect(world.events('binary.withdrawn')).toEqual([]);
});

test('without hot restarts it is started from nothing, and the one before it when it dies', async () => {
  const world = await serving({ hotRestart: false });
  await world.replaceBinary(other);
  await world.pass(5_000);
  await ends(world, world.process('epoch-0'), killed);
  await world.pass(0);
  expect(world.binaries).toEqual(['old', 'new']);
  await goesLive(world);
  await ends(world, world.newest(), crashed);
  expect(world.binaries).toEqual(['old', 'new', 'old']);
});

test('a draining parent that dies says nothing of the new Envoy', async () => {
  const world = await handedOver({ binary, watch: oneDirectory, parentShutdownMs: 2_000 });
  await world.pass(2_000);
  await ends(world, world.process('epoch-0'));
  await world.replaceBinary(other);
  await goesLive(world);
  await ends(world, world.process('epoch-1'), crashed);
  expect(world.events('binary.withdrawn')).toEqual([]);
});

test('an order before Envoy is started, and one without a known path, mean nothing', async () => {
  const world = await AgentWorld.serving();
  await world.orderUpgrade();
  expect(world.binaryChecks).toEqual([]);
});
