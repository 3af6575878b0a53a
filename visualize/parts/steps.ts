import { connection } from '../model/connection.ts';
import { chosenActor, followsEnd, goTo, jumpTo, place, recording } from '../model/place.ts';
import { isAbout } from '../model/recording/words.ts';

export function stepRecord(direction: 1 | -1): void {
  goTo(place.value + direction);
}

/** If no actor is chosen, goes to the next record. */
export function stepOfActor(direction: 1 | -1): void {
  const openRecording = recording.value;
  const actor = chosenActor.value;
  if (openRecording === undefined || actor === undefined) {
    stepRecord(direction);
    return;
  }
  for (let index = place.value + direction; index >= 0 && index < openRecording.length; index += direction) {
    if (isAbout(openRecording.recordAt(index)!, actor)) {
      goTo(index);
      return;
    }
  }
}

export function goToDeviation(direction: 1 | -1): void {
  const openRecording = recording.value;
  if (openRecording === undefined) return;
  const wrappedIndex = direction === 1 ? openRecording.deviations[0]?.index : openRecording.deviations.at(-1)?.index;
  const index = openRecording.nextDeviation(place.value, direction) ?? wrappedIndex;
  if (index !== undefined) jumpTo(index);
}

/** Also follows the end of a live program. */
export function goToEnd(): void {
  goTo((recording.value?.length ?? 0) - 1);
  if (connection.value.kind === 'live') followsEnd.value = true;
}
