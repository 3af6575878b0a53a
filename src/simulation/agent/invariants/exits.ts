import { type Invariant, listOf } from './invariant.ts';

/** Each process has an epoch that waits for its exit. */
export const everyProcessIsAwaited: Invariant = {
  name: 'every process is reaped',
  afterChoice({ host, agentEnds }) {
    if (agentEnds) return undefined;
    const unstoppedProcesses = host.processes.filter(({ effect }) => effect.getSnapshot().status !== 'active');
    return unstoppedProcesses.length === 0 ? undefined : `no epoch waits for the exit of ${listOf(unstoppedProcesses)}`;
  },
};

export const noProcessOutlivesAgent: Invariant = {
  name: 'every process ends',
  afterChoice({ host, agentExitCode, isHurried }) {
    // A process that survives SIGKILL cannot be ended, and after a second order to stop, the agent does not wait for the kernel.
    const remainingProcesses = host.processes.filter(
      (process) => !process.isUnkillable && !(isHurried === true && host.isKilled(process)),
    );
    if (agentExitCode === undefined || remainingProcesses.length === 0) return undefined;
    return `the agent exited; running: ${listOf(remainingProcesses)}`;
  },
};

export const agentExitsForReason: Invariant = {
  name: 'the agent exits only on request, or when retries are exhausted and no Envoy serves',
  afterChoice({ agentExitCode, stopOrdered, triesSinceTrigger, retryBudget, policy, host }) {
    if (agentExitCode === undefined || stopOrdered) return undefined;
    // No start is possible without a free base ID.
    if (host.processes.some(({ isUnkillable }) => isUnkillable)) return undefined;
    if (triesSinceTrigger > (policy?.restartPolicy === 'exit' ? 0 : retryBudget)) return undefined;
    return `it exited with ${agentExitCode} after ${triesSinceTrigger} attempts`;
  },
};

export const stopEnds: Invariant = {
  name: 'a stop always ends',
  whenIdle({ stopOrdered, agentExitCode, host }) {
    if (!stopOrdered || agentExitCode !== undefined) return undefined;
    return `no event is pending, and the agent still runs; running: ${listOf(host.processes)}`;
  },
};
