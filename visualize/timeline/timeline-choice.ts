import { chosenActor, place, range, recording } from '../model/place.ts';
import { actorOf } from '../model/recording/words.ts';
import { centre, isZoomedIn, view, zoomTo } from './timeline-view.ts';

let centredRange: { readonly from: number; readonly to: number } | undefined;

/** Centres the choice, or zooms to it if it is centred. */
export function showChoice(): void {
  const times = timesOfChoice();
  if (times === undefined) return;
  const { from, to } = times;
  const isAlreadyCentred =
    centredRange !== undefined && centredRange.from === view.value.from && centredRange.to === view.value.to;
  centredRange = undefined;
  if (isAlreadyCentred || !isZoomedIn.value) {
    const marginMs = Math.max((to - from) * 0.1, 2);
    zoomTo(from - marginMs, to + marginMs);
    return;
  }
  centre((from + to) / 2);
  centredRange = view.value;
}

export function rangeOfChoice(): void {
  const records = recordsOfState();
  if (records !== undefined) range.value = records;
}

function timesOfChoice(): { readonly from: number; readonly to: number } | undefined {
  const openRecording = recording.value;
  const records = range.value ?? recordsOfState();
  return openRecording === undefined || records === undefined
    ? undefined
    : { from: openRecording.timeAt(records[0]), to: openRecording.timeAt(records[1]) };
}

function recordsOfState(): readonly [number, number] | undefined {
  const openRecording = recording.value;
  const record = openRecording?.recordAt(place.value);
  if (openRecording === undefined || record === undefined) return undefined;
  return openRecording.stateRangeAt(chosenActor.value ?? actorOf(record), place.value);
}
