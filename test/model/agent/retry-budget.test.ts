import { describe, expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  endProcess,
  epochsStarted,
  killedEnd,
  orphanedWorld,
} from './scenes.ts';

checkEveryWorld();

describe('the retry budget (§2.2)', () => {
  test('is reset by a new certificate, which ends the delay, and by a healthy minute', async () => {
    const world = new AgentWorld({ retry: { budget: 3, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.settle();
    for (const digest of ['a', 'b', 'c']) {
      await endProcess(world, world.newestProcess(), { code: 1 });
      await world.passTime(200);
      await endProcess(world, world.newestProcess(), { code: 1 });
      await world.certificate(digest);
    }
    expect(world.output()).toBeUndefined();
    for (let crash = 0; crash < 12; crash++) {
      world.newestProcess().becomeLive();
      await world.passTime(60_000);
      await endProcess(world, world.newestProcess(), { code: 1 });
      await world.passTime(200);
    }
    expect(world.output()).toBeUndefined();
  });

  test('is not reset by less than a healthy minute', async () => {
    const world = await AgentWorld.startServing({ retry: { budget: 2, firstDelayMs: 200, maxDelayMs: 30_000 } });
    for (let crash = 0; crash < 3; crash++) {
      await world.passTime(59_999);
      await endProcess(world, world.newestProcess(), { code: 1 });
      if (crash < 2) await world.nextStart();
      await becomesLive(world);
    }
    expect(world.output()?.exitCode).toBe(1);
    expect(world.startedProcesses).toHaveLength(3);
  });

  test('is not reset by the same certificate, which does not end the delay', async () => {
    const world = await AgentWorld.startServing({ retry: { budget: 1, firstDelayMs: 30_000, maxDelayMs: 30_000 } });
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    await world.certificate('digest-1');
    await world.passTime(19_999);
    expect(epochsStarted(world)).toEqual([0, 1]);
    await world.passTime(1);
    await endProcess(world, world.newestProcess(), { code: 1 });
    expect(world.supervisorTags()).toEqual(['retries exhausted']);
  });

  test('is reset by SIGHUP, which ends the delay', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    for (let attempt = 0; attempt < 5; attempt++) {
      await endProcess(world, world.newestProcess(), { code: 1 });
      if (attempt < 4) await world.nextStart();
    }
    const at = world.clock.now();
    world.signal('SIGHUP');
    await world.settle();
    expect(world.clock.now()).toBe(at);
    expect(epochsStarted(world)).toEqual([0, 1, 1, 1, 1, 1, 1]);
    await endProcess(world, world.newestProcess(), { code: 1 });
    await world.passTime(200);
    expect(world.startedProcesses).toHaveLength(8);
  });

  test('stops no Envoy if it is exhausted while an epoch serves, and is reset by each healthy minute', async () => {
    const world = await AgentWorld.startServing({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    expect(world.supervisorTags()).toEqual(['retries exhausted']);
    expect((await world.requestReadiness()).ready).toBe(true);
    for (const { tries, afterMs } of [
      // Ten seconds of the serving epoch's first minute have passed.
      { tries: [0, 1, 1], afterMs: 50_000 },
      { tries: [0, 1, 1, 1], afterMs: 60_000 },
      { tries: [0, 1, 1, 1, 1], afterMs: 60_000 },
    ]) {
      await world.passTime(afterMs - 1);
      expect(epochsStarted(world)).toEqual(tries.slice(0, -1));
      await world.passTime(1);
      expect(epochsStarted(world)).toEqual(tries);
      await endProcess(world, world.newestProcess(), { code: 1 });
    }
  });

  test.each(['a new certificate', 'SIGHUP'])('is reset after exhaustion by %s', async (trigger) => {
    const world = await AgentWorld.startServing({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    if (trigger === 'SIGHUP') world.signal('SIGHUP');
    else await world.certificate('digest-2');
    await world.settle();
    expect(epochsStarted(world)).toEqual([0, 1, 1]);
  });

  test('is reset if a rejected bootstrap has exhausted it and the serving Envoy then crashes', async () => {
    const world = await AgentWorld.startServing({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
    world.rejectBootstrap = 'tls.crt: no start line';
    await world.certificate('broken');
    await world.passTime(200);
    expect(world.supervisorTags()).toEqual(['retries exhausted']);
    world.rejectBootstrap = undefined;
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(world.supervisorTags()).toEqual(['backing off']);
    await world.passTime(200);
    expect(epochsStarted(world)).toEqual([0, 0]);
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(world.output()?.trouble).toEqual([
      'agent exits: Envoy cannot be kept running',
      'epoch-0, serving: signal SIGSEGV',
      'epoch-0, initializing: signal SIGSEGV',
    ]);
  });

  test('keeps the last 20 reasons', async () => {
    const world = new AgentWorld({ retry: { budget: 24, firstDelayMs: 1, maxDelayMs: 1 } });
    await world.settle();
    for (let attempt = 0; attempt <= 24; attempt++) {
      await endProcess(world, world.newestProcess(), { code: 1, lastOutput: `reason ${attempt}` });
      if (attempt < 24) await world.nextStart();
    }
    const reasons = Array.from({ length: 20 }, (_, i) => `epoch-0, initializing: exit code 1: reason ${i + 5}`);
    expect(world.output()?.trouble).toEqual(['agent exits: Envoy cannot be kept running', ...reasons]);
  });

  test('includes starts that waited for a token, with their delays', async () => {
    const world = await orphanedWorld({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.passTime(20_000);
    await endProcess(world, world.process('epoch-0b'), killedEnd);
    await endProcess(world, world.process('epoch-1'), crashEnd);
    expect(world.output()?.trouble).toEqual([
      'agent exits: Envoy cannot be kept running',
      'epoch-0b: not live within 20000 ms',
      'epoch-1, serving: signal SIGSEGV',
    ]);
  });

  test.each(['a changed configuration', 'SIGHUP'])(
    'is reset when the serving Envoy crashes after attempts for %s exhausted it',
    async (trigger) => {
      const world = await AgentWorld.startServing({ retry: { budget: 1, firstDelayMs: 200, maxDelayMs: 30_000 } });
      if (trigger === 'SIGHUP') world.signal('SIGHUP');
      else await world.certificate('digest-1');
      await world.settle();
      await endProcess(world, world.newestProcess(), { code: 1 });
      await endProcess(world, world.process('epoch-0'), crashEnd);
      await world.passTime(200);
      expect(world.newestProcess().epoch).toBe(0);
      await endProcess(world, world.newestProcess(), { code: 1 });
      expect(world.output()?.trouble).toEqual([
        'agent exits: Envoy cannot be kept running',
        'epoch-0, serving: signal SIGSEGV',
        'epoch-0, initializing: exit code 1',
      ]);
    },
  );
});
