import { mayBeHeldBack, type SimulatedProcess } from '../simulated-process.ts';
import { type Invariant, listOf, nameOf, type Observation } from './invariant.ts';

/** A draining parent is processing requests, and a child whose parent exits early will abort (fact 4). */
export const noSignalToDrainingParent: Invariant = {
  name: 'never a termination signal to a draining parent before its deadline',
  onSignal(process, signal, observation) {
    if (signal === 'SIGUSR1' || !observation.host.isDraining(process) || process.exitRequested) return undefined;
    // A child that was killed between two probes may have been live.
    if (!process.isChildSeenLive) return undefined;
    if (observation.stopDeadlinePassed || observation.isOverdue(process)) return undefined;
    return `${signal} to ${nameOf(process)}, which drains`;
  },
};

/** A child that is not live needs its parent: without it, the child calls ten times and aborts. */
export const noSignalToNeededParent: Invariant = {
  name: 'never a termination signal to the parent of a starting epoch',
  onSignal(process, signal, { host, stopOrdered, isOverdue }) {
    if (signal === 'SIGUSR1' || stopOrdered || process.exitRequested) return undefined;
    // The parent may hang; its child would wait forever.
    if (isOverdue(process)) return undefined;
    const child = host.processes.find(
      ({ epoch, baseId, isLive, exitRequested }) =>
        baseId === process.baseId && epoch === process.epoch + 1 && !isLive && !exitRequested,
    );
    return child === undefined
      ? undefined
      : `${signal} to ${nameOf(process)}, whose child ${nameOf(child)} is starting`;
  },
};

/** On SIGTERM a child that is not live also terminates its parent (fact 3). */
export const startingIsKilled: Invariant = {
  name: 'never SIGTERM to an epoch that is not live',
  onSignal(process, signal) {
    return signal === 'SIGTERM' && !process.isLive ? `SIGTERM to ${nameOf(process)}, which is not live` : undefined;
  },
};

/** An Envoy that no probe found live may be live by now, so it is probed again. The parent of a live Envoy has closed its listeners. */
export const noSigkillToLive: Invariant = {
  name: 'never SIGKILL to an epoch that would report that it is live',
  onSignal(process, signal, { host, stopOrdered }) {
    if (signal !== 'SIGKILL' || stopOrdered || process.exitRequested) return undefined;
    if (process.isSeenLive || mayBeHeldBack(process)) return undefined;
    if (!host.isServing(process) || !host.hasAdmin(process) || !host.isResponsive(process)) return undefined;
    return host.isOrphaned(process) ? undefined : `SIGKILL to ${nameOf(process)}, which serves and was not probed`;
  },
};

/**
 * Requests of a replaced Envoy have as much time as those of a parent. An orphaned Envoy has less, and so has one that cannot close its listeners,
 * because it accepts connections until it is terminated.
 */
export const replacedFinishesRequests: Invariant = {
  name: 'never a termination signal to a replaced epoch before its deadline',
  onSignal(process, signal, { host, stopOrdered, isOverdue }) {
    if (signal === 'SIGUSR1' || stopOrdered || !process.hasClosedListeners) return undefined;
    if (host.isOrphaned(process) || process.parentCrashed) return undefined;
    // The requests of a killed process are lost already; the first SIGKILL was checked.
    if (host.isKilled(process)) return undefined;
    return isOverdue(process)
      ? undefined
      : `${signal} to ${nameOf(process)}, which was replaced and lets requests finish`;
  },
};

/**
 * Only a stop terminates a serving epoch before another one serves, or a full restart without alternative: with one base ID, or when its replacement
 * has crashed.
 */
export const servingIsKept: Invariant = {
  name: 'never a serving epoch given up for one that is not live',
  onSignal(process, signal, observation) {
    if (signal === 'SIGUSR1') return undefined;
    return unjustifiedAction(`${signal} to ${nameOf(process)}`, process, observation);
  },
  onDrain(process, observation) {
    return unjustifiedAction(`a drain order to ${nameOf(process)}`, process, observation);
  },
};

function unjustifiedAction(action: string, process: SimulatedProcess, observation: Observation): string | undefined {
  const { host, stopOrdered } = observation;
  // Between two probes the agent cannot know that the Envoy is live.
  if (stopOrdered || !host.isServing(process) || !process.isSeenLive) return undefined;
  if (observation.policy?.hotRestart === false) return undefined;
  const takesNoChild = host.isOrphaned(process) || process.parentCrashed || host.isStuck(process.baseId);
  if (takesNoChild && (observation.restartsInFull === true || process.successorCrashed)) return undefined;
  const hasOtherServing = host.processes.some((other) => other !== process && host.isServing(other));
  return hasOtherServing ? undefined : `${action}, which serves; running: ${listOf(host.processes)}`;
}

/**
 * The main thread of an orphaned Envoy blocks within 5 s of its parent's exit, and the Envoy aborts 10 s later (fact 4): enough time to start a
 * replacement.
 */
export const orphanIsReplaced: Invariant = {
  name: 'an orphaned epoch is replaced before it aborts',
  onExit(process, { signal }, { stopOrdered, restartsInFull, agentEnds }) {
    if (signal !== 'SIGABRT' || !process.isSeenLive || process.exitRequested || process.successorTried)
      return undefined;
    // There might be no agent to replace it.
    if (stopOrdered || restartsInFull === true || agentEnds) return undefined;
    return `${nameOf(process)} aborted, and no replacement was started`;
  },
};
