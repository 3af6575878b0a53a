import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { BriefChart } from './brief-charts.ts';
import { longRow, openStatesFor, siblingsOf } from './fold-statechart.ts';

/** If this number is among the opened states, long rows are shown in full. */
export const wholeRows = -1;

/** The smallest chart in which all necessary states are open; of several, the one around the active state. */
export function chooseBriefChart(
  chart: Statechart,
  pictures: readonly BriefChart[],
  leaves: readonly number[],
  manualStates: readonly number[] = [],
): BriefChart | undefined {
  const activeOpenStates = openStatesFor(chart, leaves);
  const requiredStates = [...activeOpenStates, ...manualStates.filter((number) => number !== wholeRows)];
  const rowStates = [...leaves, ...activeOpenStates].filter((number) => siblingsOf(chart, number).length > longRow);
  const matchingPictures = pictures.filter(({ open, near }) => {
    const isNear = near === undefined || (!manualStates.includes(wholeRows) && rowStates.includes(near));
    return isNear && requiredStates.every((number) => open.includes(number));
  });
  const size = ({ open, near }: BriefChart): number => open.length - (near === undefined ? 0 : 0.5);
  return matchingPictures.reduce<BriefChart | undefined>(
    (smallestPicture, next) =>
      smallestPicture === undefined || size(next) < size(smallestPicture) ? next : smallestPicture,
    undefined,
  );
}
