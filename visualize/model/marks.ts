/** Marks that a person put on records: they stay where they are, in links and in files, until they are taken away. */
import { signal } from '@preact/signals';
import { mostMarks } from './address.ts';
import { jumpTo, place, recording } from './place.ts';
import { firstAfter } from './recording/sorted.ts';

/** `seq` of the marked records, in order. They stand in the address, so there is a most. */
export const marks = signal<readonly number[]>([]);

/** Marks the record at a place, or takes its mark away. */
export function toggleMark(index: number): void {
  const seq = recording.value?.seqAt(index);
  if (seq === undefined) return;
  const others = marks.value.filter((marked) => marked !== seq);
  if (others.length === marks.value.length && others.length < mostMarks) others.push(seq);
  marks.value = others.sort((a, b) => a - b);
}

/** To the next marked record; behind the last one comes the first one. */
export function goToMark(): void {
  const open = recording.value;
  const here = open?.seqAt(place.value) ?? 0;
  const next = marks.value[firstAfter(marks.value, (seq) => seq > here)] ?? marks.value[0];
  const index = next === undefined ? undefined : open?.indexOf(next);
  if (index !== undefined) jumpTo(index);
}
