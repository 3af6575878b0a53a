import type { Invariant } from './invariant.ts';

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
