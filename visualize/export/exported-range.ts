import type { PageRecording } from '../model/recording/recording.ts';

/** Places of its first and last record, inclusive. */
export interface ExportedRange {
  readonly first: number;
  readonly last: number;
}

/** The complete trace without a chosen range; `undefined` if there are no records. */
export function exportedRange(
  recording: PageRecording,
  chosenRange: readonly [number, number] | undefined,
): ExportedRange | undefined {
  const lastIndex = recording.length - 1;
  if (lastIndex < 0) return undefined;
  const first = Math.max(0, Math.min(chosenRange?.[0] ?? 0, lastIndex));
  return { first, last: Math.max(first, Math.min(chosenRange?.[1] ?? lastIndex, lastIndex)) };
}

/** Returns text such as `pilot-agent-80-140.trace`. */
export function fileName(recording: PageRecording, { first, last }: ExportedRange, suffix: string): string {
  const program = recording.header.program.replaceAll(/[^\w.-]+/g, '-');
  return `${program}-${recording.seqAt(first)}-${recording.seqAt(last)}${suffix}`;
}
