import { type Invariant, listOf } from './invariant.ts';

export const noChartFails: Invariant = {
  name: 'no chart fails',
  afterChoice({ failures }) {
    return failures[0];
  },
};

export const triggersAreApplied: Invariant = {
  name: 'every trigger is applied or superseded',
  whenIdle({ host, desired, triesSinceTrigger, retryBudget, stopOrdered, agentExitCode, mayWaitForEver }) {
    if (stopOrdered || agentExitCode !== undefined || triesSinceTrigger > retryBudget) return undefined;
    if (mayWaitForEver === true || host.processes.some(({ isUnkillable }) => isUnkillable)) return undefined;
    const servingProcesses = host.processes.filter((process) => host.isServing(process));
    const isApplied = servingProcesses.some(
      ({ generation }) => generation.files >= desired.files && generation.orders === desired.orders,
    );
    if (isApplied) return undefined;
    return `certificate ${desired.files} and restart order ${desired.orders} are not applied; serving: ${listOf(servingProcesses)}`;
  },
};

/**
 * An agent that has exhausted its retries while an Envoy serves tries again later, because the obstacle (a folder, a control plane) may have been
 * removed.
 */
export const givingUpPasses: Invariant = {
  name: 'exhausted retries resume when the faults are over',
  whenIdle(observation) {
    const { host } = observation;
    if (!host.processes.some((process) => host.isServing(process))) return undefined;
    return triggersAreApplied.whenIdle?.({ ...observation, triesSinceTrigger: 0 });
  },
};
