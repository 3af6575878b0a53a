import { goTo, range, recording, size } from '../model/place.ts';

export function scrubTo(t: number): void {
  const openRecording = recording.value;
  if (openRecording !== undefined) goTo(openRecording.placeAt(t));
}

/** The times may be in either order. */
export function selectBetween(a: number, b: number): void {
  const openRecording = recording.value;
  if (openRecording === undefined) return;
  const first = openRecording.placeAt(Math.min(a, b) - Number.EPSILON) + 1;
  const last = openRecording.placeAt(Math.max(a, b));
  range.value = first <= last ? [first, last] : undefined;
}

/** The other end stays, or defaults to that of the trace. */
export function setRangeEnd(bound: 'first' | 'last', index: number): void {
  const lastIndex = size.value - 1;
  if (lastIndex < 0) return;
  const [first, last] = range.value ?? [0, lastIndex];
  const clampedIndex = Math.min(Math.max(index, 0), lastIndex);
  range.value =
    bound === 'first' ? [clampedIndex, Math.max(clampedIndex, last)] : [Math.min(first, clampedIndex), clampedIndex];
}
