import { noChartFails, triggersAreApplied } from './converging.ts';
import {
  agentEndsForAReason,
  nobodyForgotten,
  nobodyLeftBehind,
  noSignalToDrainingParent,
  noSignalToNeededParent,
  onlyKillTheUnborn,
  servingIsKept,
  stopEnds,
} from './ending.ts';
import type { Invariant } from './invariant.ts';
import { noDrainCutByStart, noGap, noSecondBeginning, oneNotLive } from './starting.ts';

/** What holds of the agent whatever happens (issue: exploration; spec/envoy-hot-restart.md §9). */
export const invariants: readonly Invariant[] = [
  noChartFails,
  oneNotLive,
  noGap,
  noSecondBeginning,
  noDrainCutByStart,
  noSignalToDrainingParent,
  noSignalToNeededParent,
  onlyKillTheUnborn,
  servingIsKept,
  nobodyForgotten,
  nobodyLeftBehind,
  agentEndsForAReason,
  triggersAreApplied,
  stopEnds,
];
