import { noChartFails, triggersAreApplied } from './converging.ts';
import { agentExitsForReason, everyProcessIsAwaited, noProcessOutlivesAgent, stopEnds } from './exits.ts';
import type { Invariant } from './invariant.ts';
import {
  noSigkillToLive,
  noSignalToDrainingParent,
  noSignalToNeededParent,
  orphanIsReplaced,
  replacedFinishesRequests,
  servingIsKept,
  startingIsKilled,
} from './keeping.ts';
import { failedIsNotRepeated, newestBinaryServes, onlyCheckedBinaries } from './replacing.ts';
import {
  eachStartIsReportedOnce,
  fullDiskIsReported,
  readyHasItsListeners,
  readyIsReported,
  readyIsTrue,
} from './reporting.ts';
import { fewProcesses, noDrainCutByStart, noGap, noSecondEpochZero, oneNotLive } from './starting.ts';

export const invariants: readonly Invariant[] = [
  noChartFails,
  oneNotLive,
  noGap,
  noSecondEpochZero,
  noDrainCutByStart,
  fewProcesses,
  onlyCheckedBinaries,
  failedIsNotRepeated,
  newestBinaryServes,
  noSignalToDrainingParent,
  noSignalToNeededParent,
  replacedFinishesRequests,
  startingIsKilled,
  servingIsKept,
  orphanIsReplaced,
  everyProcessIsAwaited,
  noProcessOutlivesAgent,
  agentExitsForReason,
  triggersAreApplied,
  noSigkillToLive,
  eachStartIsReportedOnce,
  fullDiskIsReported,
  readyIsTrue,
  readyHasItsListeners,
  readyIsReported,
  stopEnds,
];
