import { type Invariant, listOf } from './invariant.ts';

/** A certificate can change while an unchecked file is at the path. */
export const onlyCheckedBinaries: Invariant = {
  name: 'never an Envoy binary that was not checked',
  onSpawn({ epoch, binary = '' }, { checkedBinaries }) {
    if (checkedBinaries === undefined || checkedBinaries.has(binary)) return undefined;
    return `epoch ${epoch} is started from ${binary}; checked: ${[...checkedBinaries].join(', ')}`;
  },
};

/** A new binary whose Envoy exited without an order would fail again. It may start again only as another file. */
export const failedIsNotRepeated: Invariant = {
  name: 'never a new Envoy binary that failed or was withdrawn',
  onPrepare({ epoch, binary }, { failedBinaries }) {
    return failedBinaries?.has(binary) ? `epoch ${epoch} is started from ${binary}, which has failed` : undefined;
  },
};

export const newestBinaryServes: Invariant = {
  name: 'the newest compatible Envoy binary serves, or was withdrawn',
  whenIdle({
    host,
    checkedBinaries,
    withdrawnBinaries,
    triesSinceTrigger,
    retryBudget,
    stopOrdered,
    agentExitCode,
    mayWaitForEver,
  }) {
    if (checkedBinaries === undefined || withdrawnBinaries === undefined || stopOrdered || agentExitCode !== undefined)
      return undefined;
    if (triesSinceTrigger > retryBudget || mayWaitForEver === true) return undefined;
    if (host.processes.some(({ isUnkillable }) => isUnkillable)) return undefined;
    const newestBinary = [...checkedBinaries].at(-1) ?? '';
    const servingProcesses = host.processes.filter((process) => host.isServing(process));
    if (withdrawnBinaries.has(newestBinary) || servingProcesses.some(({ binary }) => binary === newestBinary))
      return undefined;
    return `${newestBinary} is compatible and does not serve; serving: ${listOf(servingProcesses)}`;
  },
};
