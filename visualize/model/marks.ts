/** Records that the user marked: marks are kept in links and in files until the user removes them. */
import { signal } from '@preact/signals';
import { mostMarks } from './address.ts';
import { jumpTo, place, recording } from './place.ts';
import { firstAfter } from './recording/sorted.ts';

/** `seq` of the marked records, in order. Their number is limited because they are part of the address. */
export const marks = signal<readonly number[]>([]);

/** Marks the record at a place, or removes its mark. */
export function toggleMark(index: number): void {
  const seq = recording.value?.seqAt(index);
  if (seq === undefined) return;
  const others = marks.value.filter((marked) => marked !== seq);
  if (others.length === marks.value.length && others.length < mostMarks) others.push(seq);
  marks.value = others.sort((a, b) => a - b);
}

/** Goes to the next marked record, from the last one to the first. */
export function goToMark(): void {
  const open = recording.value;
  const here = open?.seqAt(place.value) ?? 0;
  const next = marks.value[firstAfter(marks.value, (seq) => seq > here)] ?? marks.value[0];
  const index = next === undefined ? undefined : open?.indexOf(next);
  if (index !== undefined) jumpTo(index);
}
