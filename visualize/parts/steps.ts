import { connection } from '../model/connection.ts';
import { chosenActor, follows, goTo, jumpTo, place, recording } from '../model/place.ts';
import { isAbout } from '../model/recording/words.ts';

export function step(by: 1 | -1): void {
  goTo(place.value + by);
}

/** Goes to the next record of the chosen actor, or to the next record if no actor is chosen. */
export function stepOfActor(by: 1 | -1): void {
  const open = recording.value;
  const actor = chosenActor.value;
  if (open === undefined || actor === undefined) {
    step(by);
    return;
  }
  for (let index = place.value + by; index >= 0 && index < open.length; index += by) {
    if (isAbout(open.recordAt(index)!, actor)) {
      goTo(index);
      return;
    }
  }
}

export function goToDeviation(direction: 1 | -1): void {
  const open = recording.value;
  if (open === undefined) return;
  // After the last deviation follows the first one.
  const wrapped = direction === 1 ? open.deviations[0]?.index : open.deviations.at(-1)?.index;
  const index = open.nextDeviation(place.value, direction) ?? wrapped;
  if (index !== undefined) jumpTo(index);
}

/** Goes to the end; follows the end of a live program. */
export function goToEnd(): void {
  goTo((recording.value?.length ?? 0) - 1);
  if (connection.value.kind === 'live') follows.value = true;
}
