/** What is chosen, as a piece of time: the range, or the state in which the chosen actor is at the place. */
import { chosenActor, place, range, recording } from '../model/place.ts';
import { actorOf } from '../model/recording/words.ts';
import { centre, isZoomed, view, zoomTo } from './timeline-view.ts';

/** The view as it was left when the choice was put to its middle. */
let centred: { readonly from: number; readonly to: number } | undefined;

/** Brings what is chosen to the middle; where it is there already, as large as it fits. */
export function showChoice(): void {
  const times = timesOfChoice();
  if (times === undefined) return;
  const { from, to } = times;
  const isAgain = centred !== undefined && centred.from === view.value.from && centred.to === view.value.to;
  centred = undefined;
  if (isAgain || !isZoomed.value) {
    const air = Math.max((to - from) * 0.1, 2);
    zoomTo(from - air, to + air);
    return;
  }
  centre((from + to) / 2);
  centred = view.value;
}

/** Lets the range be the records while the chosen actor was in the state in which it is. */
export function rangeOfChoice(): void {
  const records = recordsOfState();
  if (records !== undefined) range.value = records;
}

function timesOfChoice(): { readonly from: number; readonly to: number } | undefined {
  const open = recording.value;
  const records = range.value ?? recordsOfState();
  return open === undefined || records === undefined
    ? undefined
    : { from: open.timeAt(records[0]), to: open.timeAt(records[1]) };
}

function recordsOfState(): readonly [number, number] | undefined {
  const open = recording.value;
  const record = open?.recordAt(place.value);
  if (open === undefined || record === undefined) return undefined;
  return open.inStateWithin(chosenActor.value ?? actorOf(record), place.value);
}
