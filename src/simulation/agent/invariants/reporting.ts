import { type Invariant, listOf } from './invariant.ts';

/** Traffic follows it. */
export const readyIsTrue: Invariant = {
  name: 'never ready while nobody takes connections',
  answering({ ready }, { host }) {
    if (!ready || host.processes.some((process) => host.isAccepting(process))) return undefined;
    return `ready; alive: ${listOf(host.processes)}`;
  },
};

/** Between two probes nobody but Envoy knows that a child has taken over. */
export const readyHasItsListeners: Invariant = {
  name: 'never ready while an Envoy serves without a listener that it refused',
  answering({ ready }, { host }) {
    const lacking = host.processes.filter((one) => one.seen && one.lacks && host.isAccepting(one));
    return ready && lacking.length > 0 ? `ready; without a listener: ${listOf(lacking)}` : undefined;
  },
};

/** Otherwise a good certificate would not bring back the traffic that a bad one had cost. */
export const readyIsSaid: Invariant = {
  name: 'ready while an Envoy serves all that it was started for',
  answering({ ready, reason }, { host, stopOrdered, agentEnds }) {
    if (ready || stopOrdered || agentEnds) return undefined;
    const good = host.processes.filter((process) => host.isReadyFor(process));
    return good.length === 0 ? undefined : `not ready (${reason}); serving: ${listOf(good)}`;
  },
};

/** Logs and metrics count on it. */
export const eachStartIsReportedOnce: Invariant = {
  name: 'each start is told as decided, then as over',
  reporting(what, name, { restart }) {
    if (what === 'restart.decided')
      return restart === undefined ? undefined : `${name} is decided while ${restart} is not over`;
    return restart === name ? undefined : `${name} is over; under way: ${restart ?? 'nothing'}`;
  },
  always({ restart, agentExitCode }) {
    if (agentExitCode === undefined || restart === undefined) return undefined;
    return `the agent has ended, and ${restart} was never told as over`;
  },
};

/** Only a person can make room. */
export const noRoomIsReported: Invariant = {
  name: 'a start that has no room for its files is told with the reason',
  always({ untold }) {
    return untold === undefined ? undefined : `nobody was told: ${untold}`;
  },
};
