/**
 * Start states of the agent's model tests. They run the real statecharts with scripted effects under virtual time; a
 * scenario or fault is named by its number (scenarios.test.ts, faults.test.ts), a rule of Envoy's by its fact in
 * docs/hot-restart-reference.md.
 */
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import type { AgentSettings } from '../../../machines/agent/settings.ts';
import { checkTrace } from '../../../src/debugger/check/check.ts';
import { formatReport } from '../../../src/debugger/check/check-report-text.ts';
import { loadDiagrams } from '../../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { AgentWorld, type ScriptedProcess, scriptedBaseIds } from '../../simulation/agent-world.ts';
import { replayDifference } from '../../simulation/replayed.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences'));

/** Checks after each test of the file: no chart failed, its trace conforms to the diagrams and can be replayed, and every decision has ended. */
export function checkEveryWorld(): void {
  afterEach(() => {
    for (const world of AgentWorld.instances.splice(0)) {
      expect(world.failure).toBeUndefined();
      expect(world.records.filter(({ kind }) => kind === 'unexpected')).toEqual([]);
      const report = checkTrace(diagrams, world.records);
      if (report.departures.length > 0) expect.fail(formatReport(report, diagrams));
      expect(replayDifference(world.records, agentMachine)).toBe('');
      expectDecisionsToEnd(world);
    }
  });
}

/** A decision that is still open belongs to the start in progress. */
function expectDecisionsToEnd(world: AgentWorld): void {
  const decided = world.events('restart.decided').map(({ name, epoch, reason, how }) => ({ name, epoch, reason, how }));
  const endedRestarts = world
    .events('restart.ended')
    .map(({ name, epoch, reason, how }) => ({ name, epoch, reason, how }));
  const openRestarts = world.supervisorTags().includes('starting') ? 1 : 0;
  expect(endedRestarts).toEqual(decided.slice(0, decided.length - openRestarts));
}

export const epochsStarted = (world: AgentWorld): number[] => world.startedProcesses.map(({ epoch }) => epoch);

export const namesStarted = (world: AgentWorld): string[] => world.startedProcesses.map(({ name }) => name);

export const namesAlive = (world: AgentWorld): string[] => [...world.runningProcesses].map(({ name }) => name);

export const crashEnd = { code: null, signal: 'SIGSEGV' };
export const killedEnd = { code: null, signal: 'SIGKILL' };

/** Settings that retry a failed start without a limit. */
export const unlimitedRetries = { retry: { budget: 1_000, firstDelayMs: 200, maxDelayMs: 30_000 } };

/** A world with epoch 1 live and epoch 0 draining. */
export async function drainingWorld(
  settings: Partial<AgentSettings> = {},
  baseIds = scriptedBaseIds,
): Promise<AgentWorld> {
  const world = await AgentWorld.startServing(settings, baseIds);
  await world.certificate('digest-1');
  await becomesLive(world);
  return world;
}

/** Makes the newest Envoy live. */
export async function becomesLive(world: AgentWorld): Promise<void> {
  world.newestProcess().becomeLive();
  await world.settle();
}

export async function endProcess(world: AgentWorld, process: ScriptedProcess, end: object = {}): Promise<void> {
  process.exit(end);
  await world.settle();
}

/** Lets Envoy reject a child because of an earlier child's mark. */
export async function rejectChild(world: AgentWorld): Promise<void> {
  await endProcess(world, world.newestProcess(), {
    code: 1,
    lastOutput: 'previous envoy process is still initializing',
    refusedByParent: true,
  });
}

/** A world whose epoch 0 serves, accepts no more children, and cannot be repaired: its replacement is starting. */
export async function replacingWorld(
  settings: Partial<AgentSettings> = {},
  baseIds = scriptedBaseIds,
): Promise<AgentWorld> {
  const world = await AgentWorld.startServing(settings, baseIds);
  world.repairError = 'another version';
  await world.certificate('digest-1');
  await rejectChild(world);
  await world.passTime(200);
  return world;
}

/** A world with epoch 1 live, whose parent exited too early: its replacement is starting. */
export async function orphanedWorld(
  settings: Partial<AgentSettings> = {},
  baseIds = scriptedBaseIds,
): Promise<AgentWorld> {
  const world = await drainingWorld(settings, baseIds);
  await world.passTime(10_000);
  await endProcess(world, world.process('epoch-0'), killedEnd);
  return world;
}

/** A world in which epoch 0 of the second base ID has replaced epoch 0 of the first, which retires. */
export async function replacedWorld(settings: Partial<AgentSettings> = {}): Promise<AgentWorld> {
  const world = await replacingWorld(settings);
  await becomesLive(world);
  return world;
}
