import { type Invariant, listOf } from './invariant.ts';

/** No chart of ours ever fails. */
export const noChartFails: Invariant = {
  name: 'no chart fails',
  always({ failures }) {
    return failures[0];
  },
};

/** When all is quiet, what serves is what was wanted; or it was tried as often as it may be. */
export const triggersAreApplied: Invariant = {
  name: 'every trigger is applied or superseded',
  atRest({ host, wanted, triesSinceTrigger, retryBudget, stopOrdered, agentExitCode, mayWaitForEver }) {
    if (stopOrdered || agentExitCode !== undefined || triesSinceTrigger > retryBudget) return undefined;
    if (mayWaitForEver === true || host.processes.some(({ undying }) => undying)) return undefined;
    const serving = host.processes.filter((process) => host.isServing(process));
    const applied = serving.some(
      ({ generation }) => generation.files >= wanted.files && generation.orders === wanted.orders,
    );
    if (applied) return undefined;
    return `certificate ${wanted.files} and restart order ${wanted.orders} are not applied; serving: ${listOf(serving)}`;
  },
};
