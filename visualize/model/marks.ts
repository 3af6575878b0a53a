import { signal } from '@preact/signals';
import { maxMarks } from './address.ts';
import { jumpTo, place, recording } from './place.ts';
import { firstIndexAfter } from './recording/sorted.ts';

/** Sorted `seq` of records. Limited because the address contains them. */
export const marks = signal<readonly number[]>([]);

export function toggleMark(index: number): void {
  const seq = recording.value?.seqAt(index);
  if (seq === undefined) return;
  const otherMarks = marks.value.filter((markedSeq) => markedSeq !== seq);
  if (otherMarks.length === marks.value.length && otherMarks.length < maxMarks) otherMarks.push(seq);
  marks.value = otherMarks.sort((a, b) => a - b);
}

export function goToMark(): void {
  const openRecording = recording.value;
  const currentSeq = openRecording?.seqAt(place.value) ?? 0;
  const next = marks.value[firstIndexAfter(marks.value, (seq) => seq > currentSeq)] ?? marks.value[0];
  const index = next === undefined ? undefined : openRecording?.indexOf(next);
  if (index !== undefined) jumpTo(index);
}
