import { noChartFails, triggersAreApplied } from './converging.ts';
import { agentEndsForAReason, nobodyForgotten, nobodyLeftBehind, stopEnds } from './ending.ts';
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
import { fewProcesses, noDrainCutByStart, noGap, noSecondBeginning, oneNotLive } from './starting.ts';
import { eachStartIsToldOnce, noRoomIsTold, readyHasItsListeners, readyIsSaid, readyIsTrue } from './telling.ts';

/** What holds of the agent whatever happens (issue: exploration; spec/envoy-hot-restart.md §9). */
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
  eachStartIsToldOnce,
  noRoomIsTold,
  readyIsTrue,
  readyHasItsListeners,
  readyIsSaid,
  stopEnds,
];
