import { describe, expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  checkEveryWorld,
  crashed,
  doomed,
  ends,
  epochsStarted,
  goesLive,
  handedOver,
  killed,
  namesStarted,
  patient,
} from './scenes.ts';

checkEveryWorld();

describe('a child', () => {
  test('that fails leaves its parent serving, and the same number is tried again', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await ends(world, world.newest(), { code: 1, lastWords: 'cannot bind' });
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.process('epoch-0').signals).toEqual([]);
    expect((await world.ask()).ready).toBe(true);
  });

  test('fact 3: that is not live within 20 s is killed, never asked to end', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await world.pass(19_999);
    expect(world.newest().signals).toEqual([]);
    await world.pass(1);
    expect(world.newest().signals).toEqual(['SIGKILL']);
    await ends(world, world.newest(), killed);
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.process('epoch-0').signals).toEqual([]);
  });

  test('that is killed, and whose parent dies before it is gone, is followed by epoch 0', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await world.pass(20_000);
    await ends(world, world.process('epoch-0'), crashed);
    expect((await world.ask()).ready).toBe(false);
    expect(epochsStarted(world)).toEqual([0, 1]);
    await ends(world, world.process('epoch-1'), killed);
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 0]);
  });

  test('whose parent dies while it starts is killed, and epoch 0 follows', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await ends(world, world.process('epoch-0'), killed);
    expect(world.process('epoch-1').signals).toEqual(['SIGKILL']);
    await ends(world, world.process('epoch-1'), killed);
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 0]);
  });

  test('that does not end on SIGKILL holds nothing up but its own number', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    await world.pass(3_600_000);
    expect(world.supervisorState()).toBe('running.aborting');
    expect((await world.ask()).ready).toBe(true);
  });
});

describe('the only Envoy', () => {
  test('that crashes is followed by epoch 0, after the first delay, unchecked because it is known to be good', async () => {
    const world = await AgentWorld.serving();
    await ends(world, world.newest(), killed);
    expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy ended' });
    await world.pass(199);
    expect(epochsStarted(world)).toEqual([0]);
    await world.pass(1);
    expect(epochsStarted(world)).toEqual([0, 0]);
    expect(world.prepared.at(-1)).toMatchObject({ epoch: 0, validate: false });
  });

  test('is checked before it is started with what was never live', async () => {
    const world = await AgentWorld.serving();
    await ends(world, world.newest(), killed);
    await world.certificate('digest-1');
    await ends(world, world.newest(), killed);
    await world.pass(30_000);
    expect(world.prepared.at(-1)).toMatchObject({ epoch: 0, validate: true });
  });

  test('that crashes while a start is waited for takes nothing with it', async () => {
    const world = await AgentWorld.serving({ starts: { burst: 1, refillMs: 60_000 } });
    await world.certificate('digest-1');
    expect(world.supervisorState()).toBe('running.waiting for a start');
    await ends(world, world.newest(), crashed);
    expect(world.supervisorState()).toBe('running.backing off');
    expect(world.messages()).toContain('supervisor → start-limiter: start.withdraw');
    await world.pass(61_000);
    expect(epochsStarted(world)).toEqual([0, 0]);
  });
});

describe('a crash while the parent drains', () => {
  test('starts the same number again at once, the first time', async () => {
    const world = await handedOver();
    await world.pass(30_000);
    await ends(world, world.newest(), crashed);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    expect(world.newest().baseId).toBe(7);
    expect((await world.ask()).ready).toBe(false);
  });

  test('starts it again after the first delay, the second time', async () => {
    const world = await handedOver();
    await ends(world, world.newest(), crashed);
    await goesLive(world);
    await ends(world, world.newest(), crashed);
    expect(world.supervisorState()).toBe('running.backing off');
    await world.pass(399);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
    await world.pass(1);
    expect(epochsStarted(world)).toEqual([0, 1, 1, 1]);
  });

  test('gives the parent its full time beside the next child', async () => {
    const world = await handedOver();
    await world.pass(30_000);
    await ends(world, world.newest(), crashed);
    await goesLive(world);
    await world.pass(64_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await ends(world, world.process('epoch-0'));
    expect(world.supervisorState()).toBe('running.settled');
  });

  test('keeps the overdue parent while its next child starts', async () => {
    const world = await handedOver();
    await ends(world, world.newest(), crashed);
    await world.pass(65_000);
    expect(world.events('epoch.overdue')).toHaveLength(1);
    expect(world.process('epoch-0').signals).toEqual([]);
    await goesLive(world);
    expect(world.supervisorState()).toBe('running.settled');
  });

  test('leads to epoch 0 when the parent leaves before the next child is live', async () => {
    const world = await handedOver();
    await ends(world, world.newest(), crashed);
    await world.pass(60_000);
    await ends(world, world.process('epoch-0'));
    expect(world.newest().signals).toEqual(['SIGKILL']);
    await ends(world, world.newest(), killed);
    await world.pass(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0']);
  });

  test('leads to epoch 0 when the parent crashes before the next child is live', async () => {
    const world = await handedOver();
    await ends(world, world.newest(), crashed);
    await ends(world, world.process('epoch-0'), crashed);
    expect(world.newest().signals).toEqual(['SIGKILL']);
    await ends(world, world.newest(), killed);
    await world.pass(1_000);
    expect(namesStarted(world)).toEqual(['epoch-0', 'epoch-1', 'epoch-1', 'epoch-0']);
  });

  test('is tried again when the next child fails too', async () => {
    const world = await handedOver();
    await ends(world, world.newest(), crashed);
    await ends(world, world.newest(), { code: 1 });
    await world.pass(400);
    expect(epochsStarted(world)).toEqual([0, 1, 1, 1]);
  });

  test('ends the agent where the policy is exit', async () => {
    const world = await handedOver({ restartPolicy: 'exit' });
    await ends(world, world.newest(), crashed);
    expect(world.output()?.exitCode).toBe(1);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });
});

describe('the retry budget', () => {
  test('is renewed by a new certificate, which cuts the delay short; and by a minute of health', async () => {
    const world = new AgentWorld({ retry: { budget: 3, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.settle();
    for (const digest of ['a', 'b', 'c']) {
      await ends(world, world.newest(), { code: 1 });
      await world.pass(200);
      await ends(world, world.newest(), { code: 1 });
      await world.certificate(digest);
    }
    expect(world.output()).toBeUndefined();
    for (let crash = 0; crash < 12; crash++) {
      world.newest().live();
      await world.pass(60_000);
      await ends(world, world.newest(), { code: 1 });
      await world.pass(200);
    }
    expect(world.output()).toBeUndefined();
  });

  test('is not renewed by less than a minute of health', async () => {
    const world = await AgentWorld.serving({ retry: { budget: 2, firstDelayMs: 200, maxDelayMs: 30_000 } });
    for (let crash = 0; crash < 3; crash++) {
      await world.pass(59_999);
      await ends(world, world.newest(), { code: 1 });
      if (crash < 2) await world.nextStart();
      await goesLive(world);
    }
    expect(world.output()?.exitCode).toBe(1);
    expect(world.started).toHaveLength(3);
  });

  test('is renewed by SIGHUP, which cuts the delay short', async () => {
    const world = await AgentWorld.serving();
    await world.certificate('digest-1');
    for (let attempt = 0; attempt < 5; attempt++) {
      await ends(world, world.newest(), { code: 1 });
      if (attempt < 4) await world.nextStart();
    }
    const at = world.clock.now();
    world.signal('SIGHUP');
    await world.settle();
    expect(world.clock.now()).toBe(at);
    expect(epochsStarted(world)).toEqual([0, 1, 1, 1, 1, 1, 1]);
    await ends(world, world.newest(), { code: 1 });
    await world.pass(200);
    expect(world.started).toHaveLength(8);
  });

  test('that is exhausted beside a serving epoch ends nothing; a minute of health brings a new try', async () => {
    const world = await AgentWorld.serving({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.certificate('digest-1');
    await ends(world, world.newest(), { code: 1 });
    expect(world.supervisorState()).toBe('running.given up on the configuration');
    expect((await world.ask()).ready).toBe(true);
    await world.pass(49_999);
    expect(epochsStarted(world)).toEqual([0, 1]);
    await world.pass(1);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
  });

  test.each(['a new certificate', 'SIGHUP'])('that is exhausted is renewed by %s', async (trigger) => {
    const world = await AgentWorld.serving({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.certificate('digest-1');
    await ends(world, world.newest(), { code: 1 });
    if (trigger === 'SIGHUP') world.signal('SIGHUP');
    else await world.certificate('digest-2');
    await world.settle();
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
  });

  test('that is exhausted says nothing of the Envoy that serves: its crash has a fresh one', async () => {
    const world = await AgentWorld.serving({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
    world.rejectBootstrap = 'tls.crt: no start line';
    await world.certificate('broken');
    await world.pass(200);
    expect(world.supervisorState()).toBe('running.given up on the configuration');
    world.rejectBootstrap = undefined;
    await ends(world, world.newest(), crashed);
    expect(world.supervisorState()).toBe('running.backing off');
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 0]);
    await ends(world, world.newest(), crashed);
    expect(world.output()?.trouble).toEqual([
      'Envoy could not be kept running',
      'epoch-0, serving: signal SIGSEGV',
      'epoch-0, initializing: signal SIGSEGV',
    ]);
  });

  test('keeps the last twenty reasons', async () => {
    const world = new AgentWorld({ retry: { budget: 24, firstDelayMs: 1, maxDelayMs: 1 } });
    await world.settle();
    for (let attempt = 0; attempt <= 24; attempt++) {
      await ends(world, world.newest(), { code: 1, lastWords: `reason ${attempt}` });
      if (attempt < 24) await world.nextStart();
    }
    const told = Array.from({ length: 20 }, (_, i) => `epoch-0, initializing: exit code 1: reason ${i + 5}`);
    expect(world.output()?.trouble).toEqual(['Envoy could not be kept running', ...told]);
  });

  test('says how long a start was waited for', async () => {
    const world = await doomed({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.pass(20_000);
    await ends(world, world.process('epoch-0b'), killed);
    await ends(world, world.process('epoch-1'), crashed);
    expect(world.output()?.trouble).toEqual([
      'Envoy could not be kept running',
      'epoch-0b: not live within 20000 ms',
      'epoch-1, serving: signal SIGSEGV',
    ]);
  });

  test.each(['a changed configuration', 'SIGHUP'])(
    'that tries at %s used up is renewed when the Envoy that served meanwhile crashes',
    async (trigger) => {
      const world = await AgentWorld.serving({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
      if (trigger === 'SIGHUP') world.signal('SIGHUP');
      else await world.certificate('digest-1');
      await world.settle();
      await ends(world, world.newest(), { code: 1 });
      await ends(world, world.process('epoch-0'), crashed);
      await world.pass(200);
      expect(world.newest().epoch).toBe(0);
      await ends(world, world.newest(), { code: 1 });
      expect(world.output()?.trouble).toEqual([
        'Envoy could not be kept running',
        'epoch-0, serving: signal SIGSEGV',
        'epoch-0, initializing: exit code 1',
      ]);
    },
  );
});

describe('modes', () => {
  test('with the policy exit a failed child does not end an agent whose Envoy serves', async () => {
    const world = await AgentWorld.serving({ restartPolicy: 'exit' });
    await world.certificate('digest-1');
    await ends(world, world.newest(), { code: 1 });
    expect(world.output()).toBeUndefined();
    expect((await world.ask()).ready).toBe(true);
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
  });

  test('with hot restart off a change drains Envoy, ends it, and starts it anew as epoch 0', async () => {
    const world = await AgentWorld.serving({ hotRestart: false });
    await world.certificate('digest-1');
    expect(epochsStarted(world)).toEqual([0]);
    expect(world.drained).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
    expect((await world.ask()).ready).toBe(true);
    await world.pass(4_499);
    expect(world.newest().signals).toEqual([]);
    await world.pass(1);
    expect(world.newest().signals).toEqual(['SIGKILL']);
    expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy is being restarted in full' });
    await ends(world, world.newest(), killed);
    expect(epochsStarted(world)).toEqual([0, 0]);
    await goesLive(world);
    expect(world.supervisorState()).toBe('running.settled');
  });

  test('with hot restart off an Envoy that ends while it is drained is followed at once', async () => {
    const world = await AgentWorld.serving({ hotRestart: false, terminationDrainMs: 1_000 });
    await world.certificate('digest-1');
    await ends(world, world.newest());
    expect(epochsStarted(world)).toEqual([0, 0]);
  });

  test('with hot restart off a short drain is enough where the agent’s own is short', async () => {
    const world = await AgentWorld.serving({ hotRestart: false, terminationDrainMs: 1_000 });
    await world.certificate('digest-1');
    await world.pass(1_000);
    expect(world.newest().signals).toEqual(['SIGKILL']);
  });

  test('with hot restart off the only Envoy that crashes is started again', async () => {
    const world = await AgentWorld.serving({ hotRestart: false });
    await ends(world, world.newest(), crashed);
    await world.pass(200);
    expect(epochsStarted(world)).toEqual([0, 0]);
  });
});

describe('pace', () => {
  test('ten starts at once, then one a second', async () => {
    const world = await AgentWorld.serving({ retry: { budget: 1_000, firstDelayMs: 1, maxDelayMs: 1 } });
    const from = world.started.length;
    const startedAt: number[] = [];
    for (let crash = 0; crash < 15; crash++) {
      await ends(world, world.newest(), { code: 1 });
      await world.nextStart();
      startedAt.push(world.clock.now());
    }
    expect(world.started.length - from).toBe(15);
    // One of ten tokens went to the first start; nine are used up in a few milliseconds, then a second counts from the asking.
    expect(startedAt).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 1_010, 2_011, 3_012, 4_013, 5_014, 6_015]);
  });

  test('a minute without starts fills the bucket again, and no further', async () => {
    const world = await AgentWorld.serving({ ...patient, starts: { burst: 2, refillMs: 1_000 } });
    await world.pass(60_000);
    const from = world.clock.now();
    const after: number[] = [];
    for (let crash = 0; crash < 3; crash++) {
      await ends(world, world.newest(), { code: 1 });
      world.signal('SIGHUP');
      await world.nextStart();
      after.push(world.clock.now() - from);
    }
    expect(after).toEqual([0, 0, 1_000]);
  });
});

test('a chart of ours that fails ends the agent, and says so', async () => {
  const world = await AgentWorld.serving();
  world.breakNextProcess = true;
  await world.certificate('digest-1');
  expect(world.output()?.exitCode).toBe(1);
  expect(world.supervisorState()).toBe('gone');
  // No diagram has what happens after a bug.
  AgentWorld.made.splice(0);
});
