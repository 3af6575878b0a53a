import { noChartFails, triggersAreApplied } from './converging.ts';
import { agentEndsForAReason, nobodyForgotten, nobodyLeftBehind, stopEnds } from './exits.ts';
import type { Invariant } from './invariant.ts';
import {
  doomedIsReplaced,
  liveIsNotKilled,
  noSignalToDrainingParent,
  noSignalToNeededParent,
  onlyKillTheUnborn,
  replacedHasItsTime,
  servingIsKept,
} from './keeping.ts';
import { checkedAlone, failedIsNotRepeated, servedIsWanted } from './replacing.ts';
import {
  eachStartIsReportedOnce,
  noRoomIsReported,
  readyHasItsListeners,
  readyIsSaid,
  readyIsTrue,
} from './reporting.ts';
import { fewProcesses, noDrainCutByStart, noGap, noSecondBeginning, oneNotLive } from './starting.ts';

/** Invariants of the agent (spec/envoy-hot-restart.md §9). */
export const invariants: readonly Invariant[] = [
  noChartFails,
  oneNotLive,
  noGap,
  noSecondBeginning,
  noDrainCutByStart,
  fewProcesses,
  checkedAlone,
  failedIsNotRepeated,
  servedIsWanted,
  noSignalToDrainingParent,
  noSignalToNeededParent,
  replacedHasItsTime,
  onlyKillTheUnborn,
  servingIsKept,
  doomedIsReplaced,
  nobodyForgotten,
  nobodyLeftBehind,
  agentEndsForAReason,
  triggersAreApplied,
  liveIsNotKilled,
  eachStartIsReportedOnce,
  noRoomIsReported,
  readyIsTrue,
  readyHasItsListeners,
  readyIsSaid,
  stopEnds,
];
