import { type Invariant, listOf } from './invariant.ts';

/** Traffic follows it. */
export const readyIsTrue: Invariant = {
  name: 'never ready while nobody takes connections',
  answering({ ready }, { host }) {
    if (!ready || host.processes.some((process) => host.isAccepting(process))) return undefined;
    return `ready; alive: ${listOf(host.processes)}`;
  },
};

/** Logs and metrics count on it. */
export const eachStartIsToldOnce: Invariant = {
  name: 'each start is told as decided, then as over',
  telling(what, name, { restart }) {
    if (what === 'restart.decided')
      return restart === undefined ? undefined : `${name} is decided while ${restart} is not over`;
    return restart === name ? undefined : `${name} is over; under way: ${restart ?? 'nothing'}`;
  },
  always({ restart, agentExitCode }) {
    if (agentExitCode === undefined || restart === undefined) return undefined;
    return `the agent has ended, and ${restart} was never told as over`;
  },
};
