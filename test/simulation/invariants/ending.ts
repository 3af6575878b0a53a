import { type Invariant, listOf, named } from './invariant.ts';

/** Its requests still run, and a child whose parent dies before its time is doomed (fact 4). */
export const noSignalToDrainingParent: Invariant = {
  name: 'never an ending signal to a draining parent before its time',
  signalling(process, signal, observed) {
    if (signal === 'SIGUSR1' || !observed.host.isDraining(process) || process.sentAway) return undefined;
    // A child that was killed between two probes may have been live.
    if (!process.supersededSeen) return undefined;
    if (observed.stopDeadlinePassed || observed.isOverdue(process)) return undefined;
    return `${signal} to ${named(process)}, which drains`;
  },
};

/** A child that is not live needs its parent: without it, it calls ten times and aborts (§2). */
export const noSignalToNeededParent: Invariant = {
  name: 'never an ending signal to the parent of an epoch that is on its way',
  signalling(process, signal, { host, stopOrdered }) {
    if (signal === 'SIGUSR1' || stopOrdered || process.sentAway) return undefined;
    const child = host.processes.find(
      ({ epoch, baseId, live, sentAway }) =>
        baseId === process.baseId && epoch === process.epoch + 1 && !live && !sentAway,
    );
    return child === undefined ? undefined : `${signal} to ${named(process)}, whose child ${named(child)} is starting`;
  },
};

/** On SIGTERM it takes its parent along (fact 3). */
export const onlyKillTheUnborn: Invariant = {
  name: 'never SIGTERM to an epoch that is not live',
  signalling(process, signal) {
    return signal === 'SIGTERM' && !process.live ? `SIGTERM to ${named(process)}, which is not live` : undefined;
  },
};

/**
 * Only a stop, or a base id in which no child can ever start, ends an epoch that serves. One whose parent died too early
 * will end soon whatever is done.
 */
export const servingIsKept: Invariant = {
  name: 'never a serving epoch given up for one that is not live',
  signalling(process, signal, observed) {
    if (signal === 'SIGUSR1') return undefined;
    return givenUp(`${signal} to ${named(process)}`, process, observed);
  },
  draining(process, observed) {
    return givenUp(`a drain order to ${named(process)}`, process, observed);
  },
};

function givenUp(deed: string, ...[process, observed]: Parameters<NonNullable<Invariant['draining']>>) {
  const { host, stopOrdered } = observed;
  // Between two probes nobody can know that it is live.
  if (stopOrdered || !host.isServing(process) || !process.seen) return undefined;
  if (host.isDoomed(process) || host.isStuck(process.baseId)) return undefined;
  const better = host.processes.some((other) => other !== process && host.isServing(other));
  return better ? undefined : `${deed}, which serves; alive: ${listOf(host.processes)}`;
}

/** While the agent runs, each process has an epoch that waits for its exit. */
export const nobodyForgotten: Invariant = {
  name: 'every process is reaped',
  always({ host, agentEnds }) {
    if (agentEnds) return undefined;
    const forgotten = host.processes.filter(({ effect }) => effect.getSnapshot().status !== 'active');
    return forgotten.length === 0 ? undefined : `nobody waits for the exit of ${listOf(forgotten)}`;
  },
};

/** No Envoy outlives its agent. */
export const nobodyLeftBehind: Invariant = {
  name: 'every process ends',
  always({ host, agentExitCode }) {
    if (agentExitCode === undefined || host.processes.length === 0) return undefined;
    return `the agent has ended; alive: ${listOf(host.processes)}`;
  },
};

/** The agent ends by itself only when it has tried as often as it may, and nobody serves. */
export const agentEndsForAReason: Invariant = {
  name: 'the agent ends only when told to, or when its retry budget is gone and nobody serves',
  always({ agentExitCode, stopOrdered, triesSinceTrigger, retryBudget }) {
    if (agentExitCode === undefined || stopOrdered) return undefined;
    if (triesSinceTrigger > retryBudget) return undefined;
    return `it ended with ${agentExitCode} after ${triesSinceTrigger} tries`;
  },
};

export const stopEnds: Invariant = {
  name: 'a stop always ends',
  atRest({ stopOrdered, agentExitCode, host }) {
    if (!stopOrdered || agentExitCode !== undefined) return undefined;
    return `nothing happens any more, and the agent has not ended; alive: ${listOf(host.processes)}`;
  },
};
