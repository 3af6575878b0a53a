/** docs/exploring-reference.md has the table of choices. */
import type { WorldChoice } from '../../debugger/explore/world.ts';
import type { Zone } from '../../debugger/explore/zone.ts';
import { filesThatAreRead, type WorldState } from './exploration-state.ts';
import type { Generation, SimulatedHost, SimulatedProcess } from './simulated-host.ts';

export interface ChoiceContext {
  readonly state: WorldState;
  readonly host: SimulatedHost;
  readonly zone: Zone;
  readonly watchFails: boolean;
  readonly mayBeKilled: boolean;
  readonly mayBeSucceeded: boolean;
  /** A newer agent has not taken over yet. */
  readonly standsBy: boolean;
  /** The agent accepts no triggers. */
  readonly agentEnds: boolean;
}

/** All other bounded choices are faults. */
export const isTrigger = (name: string): boolean =>
  ['cert', 'hup', 'reopen', 'term', 'binary', 'successor'].includes(name);

const freeChoice = (name: string): WorldChoice => ({ name, free: true });
const boundedChoice = (name: string): WorldChoice => ({ name, free: false });

export function* possibleChoices(situation: ChoiceContext): Generator<WorldChoice> {
  const { state: s, host, zone, watchFails, mayBeKilled, mayBeSucceeded, standsBy, agentEnds } = situation;
  if (mayBeSucceeded && s.triggers > 0 && s.link !== undefined && s.stoppedAgent === undefined)
    yield boundedChoice('successor');
  if (s.stoppedAgent !== undefined) yield freeChoice(standsBy ? 'hold' : 'next');
  else if (mayBeKilled && s.faults > 0 && !agentEnds) yield boundedChoice('kill');
  if (s.triggers > 0 && !agentEnds) yield boundedChoice('reopen');
  // With `watchFails`, files also change while there is no watch; the next watch detects the change.
  const mayChange = (watchFails || s.watch !== undefined) && !s.isDirectoryAway;
  if (s.stop === 'not ordered' && !agentEnds) {
    if (s.triggers > 0 && mayChange) yield boundedChoice('cert');
    if (s.triggers > 0) yield boundedChoice('hup');
    if (s.binaryWatch !== undefined && !s.isBinaryIncompatible) {
      if (s.triggers > 0) yield boundedChoice('binary');
      if (s.faults > 0) yield boundedChoice('misfit');
    }
    if (s.faults > 0 && mayChange && !s.isSpoiled) yield boundedChoice('spoil');
    if (watchFails) yield* directoryChoices(s);
  }
  if (s.stops > 0) yield boundedChoice('term');
  // The files might never appear.
  if (s.fileWait !== undefined) yield { name: 'came', free: true, fair: false };
  if (s.fileRead !== undefined) {
    yield freeChoice('read');
    if (s.faults > 0) yield boundedChoice('unread');
  }
  for (const epoch of s.prepareCalls.keys()) {
    if (s.hungPrepares.has(epoch)) continue;
    yield freeChoice(`prepared:${epoch}`);
    if (s.faults > 0) {
      yield boundedChoice(`refuse:${epoch}`);
      yield boundedChoice(`unspawnable:${epoch}`);
      yield boundedChoice(`unprepared:${epoch}`);
      if (s.refusedFiles !== filesThatAreRead(s)) yield boundedChoice(`lack:${epoch}`);
    }
  }
  for (const label of s.pendingSpawns.keys()) yield freeChoice(`spawned:${label}`);
  if (repairIsUnderWay(s)) {
    yield freeChoice('repaired');
    if (s.faults > 0) yield boundedChoice('unrepaired');
  }
  for (const name of s.pendingProbes.keys()) if (isAdminResponsive(name, host)) yield freeChoice(`looked:${name}`);
  for (const process of host.processes) yield* processChoices(process, s, host);
  // After its retries are exhausted, the agent retries a configuration once a minute without end.
  for (const timer of zone.firableTimers()) yield { name: `tick:${timer}`, free: timer !== 'supervisor.healthy' };
}

function* directoryChoices({ faults, watch, isWatchHung, isDirectoryAway }: WorldState): Generator<WorldChoice> {
  // The directory might never reappear.
  if (isDirectoryAway) for (const name of ['back', 'back:hung']) yield { name, free: true, fair: false };
  if (faults === 0 || watch === undefined) return;
  yield boundedChoice('unwatch');
  if (isDirectoryAway) return;
  yield boundedChoice('unseen');
  yield boundedChoice('away');
  if (!isWatchHung) yield boundedChoice('replace');
}

function* processChoices(process: SimulatedProcess, state: WorldState, host: SimulatedHost): Generator<WorldChoice> {
  const { label } = process;
  const nature = host.natureOf(process);
  const becomesLive = nature?.event === 'envoy.went-live';
  if (nature !== undefined && !(becomesLive && cannotBecomeLive(process.generation, state))) {
    yield freeChoice(`${natureNames[nature.event]}:${label}`);
  }
  if (hasNewProbeResult(process, state, host)) yield freeChoice(`seen:${label}`);
  if (process.isUnresponsive) yield freeChoice(`well:${label}`);
  if (state.faults === 0) return;
  if (host.mayHang(process)) {
    yield boundedChoice(`hang:${label}`);
    yield boundedChoice(`usr1:${label}`);
  }
  if (nature?.withinMs === undefined || host.isOrphaned(process)) yield boundedChoice(`crash:${label}`);
  if (becomesLive && state.unusableGeneration === undefined) yield boundedChoice(`starve:${label}`);
  if (host.isKilled(process) && !process.isUnkillable) yield boundedChoice(`undying:${label}`);
  if (process.isSeenLive && host.isServing(process) && host.isResponsive(process)) yield boundedChoice(`sick:${label}`);
}

/** If true, only a newer configuration can become live. */
export function cannotBecomeLive(
  { files, orders }: Generation,
  { unusableGeneration }: Pick<WorldState, 'unusableGeneration'>,
): boolean {
  return unusableGeneration?.files === files && unusableGeneration.orders === orders;
}

/** If no process owns the admin port, the call fails immediately. If the main thread is blocked, the call does not return. */
export function isAdminResponsive(name: string, host: SimulatedHost): boolean {
  const process = host.processes.find(({ label }) => label === name);
  return process === undefined || host.isResponsive(process);
}

export function isDetectableAsLive(process: SimulatedProcess, { probes }: WorldState, host: SimulatedHost): boolean {
  if (!process.isLive || process.exitRequested || !probes.has(process.label)) return false;
  return host.hasAdmin(process) && host.isResponsive(process);
}

/** A probe also checks listeners, and reports missing ones once. */
export function hasNewProbeResult(process: SimulatedProcess, state: WorldState, host: SimulatedHost): boolean {
  return isDetectableAsLive(process, state, host) && !process.isHeldBack;
}

/** False once the supervisor has stopped waiting for the repair. */
function repairIsUnderWay({ pendingRepair }: WorldState): boolean {
  return pendingRepair?.call.getSnapshot().status === 'active';
}

export const natureNames = {
  'envoy.admin-opened': 'admin',
  'envoy.went-live': 'live',
  'envoy.ended': 'exit',
  'envoy.called-parent': 'call',
} as const;

export const eventsOfChoices: Readonly<Record<string, Parameters<SimulatedHost['sendEvent']>[1]>> = {
  admin: 'envoy.admin-opened',
  live: 'envoy.went-live',
  exit: 'envoy.ended',
  call: 'envoy.called-parent',
  crash: 'envoy.crashed',
  hang: 'envoy.hung',
};
