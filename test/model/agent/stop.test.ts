import { describe, expect, test } from 'vitest';
import { defaultSettings } from '../../../machines/agent/settings.ts';
import { AgentWorld } from '../../simulation/agent-world.ts';
import {
  becomesLive,
  checkEveryWorld,
  crashEnd,
  drainingWorld,
  endProcess,
  epochsStarted,
  killedEnd,
  namesStarted,
  orphanedWorld,
  rejectChild,
  replacedWorld,
  replacingWorld,
} from './scenes.ts';

checkEveryWorld();

const orderedEnd = { exitCode: 0, trouble: [] };

describe('a stop', () => {
  test('sends SIGTERM only to the newest epoch while a parent drains (fact 6)', async () => {
    const world = await drainingWorld();
    world.signal('SIGINT');
    await world.passTime(5_000);
    expect(world.startedProcesses.map((p) => p.signals)).toEqual([[], ['SIGTERM']]);
    await endProcess(world, world.process('epoch-1'));
    await endProcess(world, world.process('epoch-0'));
    expect(world.output()).toEqual(orderedEnd);
    // The child caused its parent's exit, which was not too early and therefore is no failure.
    expect(world.events('epoch.failed')).toEqual([]);
  });

  test('lets a draining parent without a child finish its requests', async () => {
    const world = await drainingWorld();
    world.rejectBootstrap = 'no such field';
    await endProcess(world, world.newestProcess(), crashEnd);
    world.signal('SIGTERM');
    await world.passTime(4_999);
    expect(world.process('epoch-0').signals).toEqual([]);
    await world.passTime(1);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    await endProcess(world, world.process('epoch-0'));
    expect(world.output()).toEqual(orderedEnd);
  });

  test('sends SIGTERM to both a replaced epoch and the serving one', async () => {
    const world = await replacedWorld();
    world.signal('SIGTERM');
    await world.passTime(5_000);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    expect(world.process('epoch-0b').signals).toEqual(['SIGTERM']);
    expect(world.drainCalls).toEqual([
      { epoch: 0, baseId: 7, replaced: true },
      { epoch: 0, baseId: 8, replaced: false },
    ]);
    await endProcess(world, world.process('epoch-0'));
    await endProcess(world, world.process('epoch-0b'));
    expect(world.output()).toEqual(orderedEnd);
  });

  test('kills a starting replacement, and drains the serving epoch', async () => {
    const world = await replacingWorld();
    world.signal('SIGTERM');
    await world.settle();
    expect(world.process('epoch-0b').signals).toEqual(['SIGKILL']);
    expect(world.drainCalls).toEqual([{ epoch: 0, baseId: 7, replaced: false }]);
    await endProcess(world, world.process('epoch-0b'), killedEnd);
    await world.passTime(5_000);
    expect(world.process('epoch-0').signals).toEqual(['SIGTERM']);
    await endProcess(world, world.process('epoch-0'));
    expect(world.output()).toEqual(orderedEnd);
  });

  test('terminates an Envoy whose drain requests fail', async () => {
    const world = await AgentWorld.startServing();
    world.drainError = 'connection refused';
    world.signal('SIGTERM');
    await world.passTime(5_000);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
    expect(world.events('epoch.drain-failed')).toMatchObject([{ name: 'epoch-0', reason: 'connection refused' }]);
    await endProcess(world, world.newestProcess());
    expect(world.output()).toEqual(orderedEnd);
  });

  test('makes the agent not ready, whatever Envoy reports', async () => {
    const world = await AgentWorld.startServing();
    world.signal('SIGTERM');
    expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'agent is stopping' });
  });

  test('releases base IDs after all Envoys have exited', async () => {
    const world = await AgentWorld.startServing();
    world.signal('SIGTERM');
    await world.passTime(5_000);
    expect(world.releasedBaseIds).toBeUndefined();
    await endProcess(world, world.newestProcess());
    expect(world.releasedBaseIds).toEqual([7, 8]);
  });
});

describe('the limits of a stop (§2.4)', () => {
  test('kill an Envoy that ignores SIGTERM', async () => {
    const world = await AgentWorld.startServing();
    world.signal('SIGTERM');
    await world.passTime(5_000 + defaultSettings.stopLimitMs - 1);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
    await world.passTime(1);
    expect(world.newestProcess().signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  test('do not delay an Envoy that was killed during its start, because it has no requests', async () => {
    const world = new AgentWorld();
    await world.settle();
    world.signal('SIGTERM');
    await world.passTime(9_999);
    expect(world.supervisorTags()).toEqual(['ending', 'stopping']);
    await world.passTime(1);
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
    expect(world.output()).toEqual(orderedEnd);
  });
});

/** A stop reaches the supervisor in each of its states, and the drain or the exit begins immediately. */
describe('a stop at any time', () => {
  const backingOff = async (): Promise<AgentWorld> => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    return world;
  };
  const createGivenUpWorld = async (): Promise<AgentWorld> => {
    const world = await AgentWorld.startServing({ retry: { budget: 0, firstDelayMs: 200, maxDelayMs: 30_000 } });
    await world.certificate('digest-1');
    await endProcess(world, world.newestProcess(), { code: 1 });
    return world;
  };
  const aborting = async (): Promise<AgentWorld> => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    await world.passTime(20_000);
    return world;
  };
  const waitingForStart = async (): Promise<AgentWorld> => {
    const world = await AgentWorld.startServing({ starts: { burst: 1, refillMs: 60_000 } });
    await world.certificate('digest-1');
    return world;
  };
  const waitingForParent = async (): Promise<AgentWorld> => {
    const world = await drainingWorld();
    await world.certificate('digest-2');
    return world;
  };
  const starting = async (): Promise<AgentWorld> => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    return world;
  };
  const recycling = async (): Promise<AgentWorld> => await replacingWorld({}, [7]);
  const killing = async (): Promise<AgentWorld> => {
    const world = await replacingWorld({}, [7]);
    await world.passTime(4_500);
    return world;
  };
  const secondChild = async (): Promise<AgentWorld> => {
    const world = await drainingWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    return world;
  };
  const replacedCrashed = async (): Promise<AgentWorld> => {
    const world = await replacedWorld();
    await endProcess(world, world.newestProcess(), crashEnd);
    return world;
  };

  test.each<[string, () => Promise<AgentWorld>, string[], drains: number]>([
    ['no restart is in progress', () => AgentWorld.startServing(), ['settled'], 1],
    ['a start waits for the exit of a parent', waitingForParent, ['waiting for parent exit'], 1],
    ['a start waits for a token', waitingForStart, ['rate limited'], 1],
    ['a child starts', starting, ['beside the serving epoch', 'starting'], 1],
    ['a crashed child is started again', secondChild, ['no serving epoch', 'starting'], 0],
    ['a child is being killed', aborting, ['aborting'], 1],
    ['a retry is pending', backingOff, ['backing off'], 1],
    ['retries are exhausted', createGivenUpWorld, ['retries exhausted'], 1],
    ['a replacement starts', () => replacingWorld(), ['beside the serving epoch', 'starting'], 1],
    ['a replacement of an orphaned epoch starts', () => orphanedWorld(), ['beside the serving epoch', 'starting'], 1],
    ['a replaced epoch retires', () => replacedWorld(), ['settled'], 2],
    ['a replacement is started again', replacedCrashed, ['backing off'], 1],
    ['Envoy is drained for a full restart', recycling, ['draining', 'full restart'], 1],
    ['Envoy is killed for a full restart', killing, ['full restart', 'killing'], 1],
  ])('drains serving Envoys immediately and ends all Envoys while %s', async (_, scene, state, drains) => {
    const world = await scene();
    expect(world.supervisorTags()).toEqual(state);
    const startedNames = namesStarted(world);
    world.signal('SIGTERM');
    await world.settle();
    expect(world.supervisorTags()).toContainEqual(expect.stringMatching(/^(stopping|gone)$/));
    expect(world.drainCalls).toHaveLength(drains);
    // A killed epoch is not live; no other epoch is signalled before the drain ends.
    for (const process of world.runningProcesses) if (process.signals.includes('SIGKILL')) process.exit(killedEnd);
    await world.passTime(5_000);
    for (const process of world.runningProcesses) {
      expect(process.signals.length > 0 || world.runningProcesses.size > 1).toBe(true);
      process.exit();
    }
    await world.settle();
    expect(world.output()).toEqual(orderedEnd);
    expect(world.runningProcesses.size).toBe(0);
    expect(namesStarted(world)).toEqual(startedNames);
  });

  test('cancels a repair that is in progress', async () => {
    const world = await AgentWorld.startServing();
    await world.certificate('digest-1');
    world.newestProcess().exit({ code: 1, refusedByParent: true });
    expect(world.supervisorTags()).toEqual(['repairing']);
    world.signal('SIGTERM');
    await world.passTime(5_000);
    await endProcess(world, world.newestProcess());
    await endProcess(world, world.process('epoch-0'));
    expect(world.output()).toEqual(orderedEnd);
    expect(epochsStarted(world)).toEqual([0, 1]);
  });

  test('ends the agent without a start while base IDs are claimed', async () => {
    const world = new AgentWorld();
    world.signal('SIGTERM');
    await world.settle();
    expect(world.output()).toEqual(orderedEnd);
    expect(world.startedProcesses).toEqual([]);
  });

  test('cancels the start of the first epoch during its preparation', async () => {
    const world = new AgentWorld();
    // The base IDs are claimed and the watcher has read the files: the bootstrap is being generated.
    const preparing = (): boolean => world.records.some((r) => r.kind === 'spawn' && r.actor === 'epoch-0/prepare');
    for (let tick = 0; tick < 100 && !preparing(); tick++) await Promise.resolve();
    expect(preparing()).toBe(true);
    world.signal('SIGTERM');
    await world.settle();
    expect(world.output()).toEqual(orderedEnd);
    expect(world.startedProcesses).toEqual([]);
  });

  test('ends the agent immediately if the only Envoy has exited and a retry is pending', async () => {
    const world = await AgentWorld.startServing();
    await endProcess(world, world.newestProcess(), { code: 1 });
    world.signal('SIGTERM');
    await world.settle();
    expect(world.output()).toEqual(orderedEnd);
    expect(epochsStarted(world)).toEqual([0]);
  });

  test('ends the agent immediately while it waits for the files of the first start', async () => {
    const world = new AgentWorld();
    world.filesMissing = true;
    await world.passTime(60_000);
    expect(world.supervisorTags()).toEqual(['not started']);
    world.signal('SIGTERM');
    await world.settle();
    expect(world.output()).toEqual(orderedEnd);
  });
});

describe('a second signal', () => {
  test.each<[string, () => Promise<AgentWorld>]>([
    ['a parent drains', () => drainingWorld()],
    ['a replaced epoch retires', () => replacedWorld()],
    ['a replacement starts', () => replacingWorld()],
  ])('kills every Envoy immediately while %s', async (_, scene) => {
    const world = await scene();
    world.signal('SIGTERM');
    world.signal('SIGTERM');
    await world.settle();
    expect([...world.runningProcesses].map((p) => p.signals.at(-1))).toEqual(
      [...world.runningProcesses].map(() => 'SIGKILL'),
    );
    for (const process of world.runningProcesses) process.exit(killedEnd);
    await world.settle();
    expect(world.output()).toEqual(orderedEnd);
  });
});

describe('a stop that waits for requests in flight (§2.5)', () => {
  const createWaitingWorld = async (inFlight: number | undefined): Promise<AgentWorld> => {
    const world = await AgentWorld.startServing({ exitOnZeroActiveConnections: true, minimumDrainMs: 3_000 });
    world.requestsInFlight = inFlight;
    world.signal('SIGTERM');
    await world.settle();
    return world;
  };

  test('does not count requests before the minimum time has passed', async () => {
    const world = await createWaitingWorld(0);
    expect(world.drainCalls).toHaveLength(1);
    await world.passTime(2_999);
    expect(world.countedAdminPorts).toEqual([]);
    expect(world.newestProcess().signals).toEqual([]);
    await world.passTime(1);
    expect(world.countedAdminPorts).toEqual([15_000]);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
  });

  test('counts requests once per second, without a limit', async () => {
    const world = await createWaitingWorld(1);
    await world.passTime(3_000);
    expect(world.countedAdminPorts).toHaveLength(1);
    await world.passTime(999);
    expect(world.countedAdminPorts).toHaveLength(1);
    await world.passTime(120_001);
    expect(world.countedAdminPorts).toHaveLength(122);
    expect(world.newestProcess().signals).toEqual([]);
    world.requestsInFlight = 0;
    await world.passTime(1_000);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
  });

  test('stops an Envoy without statistics', async () => {
    const world = await createWaitingWorld(-1);
    await world.passTime(3_000);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
  });

  test('queries an unresponsive Envoy four more times, and then stops it', async () => {
    const world = await createWaitingWorld(undefined);
    await world.passTime(6_999);
    expect(world.countedAdminPorts).toHaveLength(4);
    expect(world.newestProcess().signals).toEqual([]);
    await world.passTime(1);
    expect(world.countedAdminPorts).toHaveLength(5);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
  });

  test('resets the count of missing responses after a response', async () => {
    const world = await createWaitingWorld(undefined);
    await world.passTime(6_000);
    world.requestsInFlight = 2;
    await world.passTime(1_000);
    world.requestsInFlight = undefined;
    await world.passTime(4_000);
    expect(world.newestProcess().signals).toEqual([]);
    await world.passTime(1_000);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
  });

  test('ends its wait at a second signal', async () => {
    const world = await createWaitingWorld(5);
    await world.passTime(10_000);
    world.signal('SIGTERM');
    expect(world.newestProcess().signals).toEqual(['SIGKILL']);
  });

  test('ends its wait when all Envoys have exited', async () => {
    const world = await createWaitingWorld(5);
    await world.passTime(10_000);
    await endProcess(world, world.newestProcess(), crashEnd);
    expect(world.output()).toEqual(orderedEnd);
  });

  test('counts requests at the serving replacement, not at the replaced epoch', async () => {
    const world = await replacedWorld({ exitOnZeroActiveConnections: true });
    world.signal('SIGTERM');
    await world.passTime(5_000);
    expect(world.countedAdminPorts).toEqual([16_000]);
  });

  test('counts requests at the serving epoch until a starting replacement exits', async () => {
    const world = await replacingWorld({ exitOnZeroActiveConnections: true });
    world.signal('SIGTERM');
    await world.passTime(5_000);
    expect(world.countedAdminPorts).toEqual([15_000]);
  });

  test('counts requests at a draining parent without a child', async () => {
    const world = await drainingWorld({ exitOnZeroActiveConnections: true });
    world.rejectBootstrap = 'no such field';
    await endProcess(world, world.newestProcess(), crashEnd);
    world.signal('SIGTERM');
    await world.passTime(5_000);
    expect(world.countedAdminPorts).toEqual([15_000]);
  });
});

describe('the reason of a stop', () => {
  test('is quit.requested after POST /quitquitquit', async () => {
    const world = await AgentWorld.startServing();
    world.requestQuit();
    await world.passTime(5_000);
    expect(world.events('supervisor.stop')).toEqual([{ type: 'supervisor.stop', reason: 'quit.requested' }]);
    await endProcess(world, world.newestProcess());
    expect(world.output()).toEqual(orderedEnd);
  });

  test('is the name of the signal', async () => {
    const world = await AgentWorld.startServing();
    world.signal('SIGINT');
    expect(world.events('supervisor.stop')).toEqual([{ type: 'supervisor.stop', reason: 'SIGINT' }]);
  });

  test('is reported if the status port fails, and the agent stops in order', async () => {
    const world = await AgentWorld.startServing();
    world.breakStatus('EMFILE');
    await world.passTime(5_000);
    await endProcess(world, world.newestProcess());
    expect(world.output()).toEqual({ exitCode: 1, trouble: ['EMFILE'] });
  });

  test('is unchanged if the status port fails during a stop', async () => {
    const world = await AgentWorld.startServing();
    world.signal('SIGTERM');
    world.breakStatus('EMFILE');
    world.signal('SIGHUP');
    await world.passTime(5_000);
    expect(world.newestProcess().signals).toEqual(['SIGTERM']);
    await endProcess(world, world.newestProcess());
    expect(world.output()).toEqual(orderedEnd);
  });
});

test('a change during a stop starts no Envoy', async () => {
  const world = await drainingWorld();
  world.changeFiles('digest-2');
  await world.passTime(9_999);
  world.signal('SIGTERM');
  await world.passTime(1);
  await becomesLive(world);
  await endProcess(world, world.process('epoch-0'));
  await endProcess(world, world.process('epoch-1'));
  expect(epochsStarted(world)).toEqual([0, 1]);
  expect(world.output()).toEqual(orderedEnd);
});

test("a child's rejection during a stop causes no repair", async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  world.signal('SIGTERM');
  await rejectChild(world);
  expect(world.repairedBaseIds).toEqual([]);
});
