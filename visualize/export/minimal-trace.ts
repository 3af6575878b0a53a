import { formatTraceLine, type TraceHeader } from '../../src/runtime/trace/trace.ts';
import type { Recording } from '../model/recording/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/**
 * A trace of a part of a recording. Its header lists the actors that lived before it, so that it opens and is checked
 * like any trace that begins late; it contains only the machines that occur.
 */
export function minimalTrace(recording: Recording, part: ExportedRange): string {
  const { first, last } = part;
  const living = [...recording.stateAt(first - 1).actors.values()];
  const { actors: _, ...header } = recording.header;
  const own: TraceHeader = {
    ...header,
    machines: machinesWithin(recording, part),
    ...(living.length > 0 && { actors: living }),
  };
  return [own, ...recording.recordsIn(first, last)].map(formatTraceLine).join('');
}

/** Machines of actors that lived before the part, and of those spawned within it. */
export function machinesWithin(recording: Recording, { first, last }: ExportedRange): TraceHeader['machines'] {
  const occurring = new Set([...recording.stateAt(first - 1).actors.values()].map(({ machine }) => machine));
  for (const record of recording.recordsIn(first, last)) {
    if (record.kind === 'spawn') occurring.add(record.machine);
  }
  return recording.header.machines.filter(({ id }) => occurring.has(id));
}
