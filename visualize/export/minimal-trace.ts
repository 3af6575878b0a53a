import { formatTraceLine, type TraceHeader } from '../../src/runtime/trace/trace.ts';
import type { Recording } from '../model/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/**
 * A trace of a part of a recording: its header tells who lived before it, so that it opens and is checked as any trace
 * that begins late; it has only the machines that occur.
 */
export function minimalTrace(recording: Recording, { first, last }: ExportedRange): string {
  const records = recording.records.slice(first, last + 1);
  const living = [...recording.stateAt(first - 1).actors.values()];
  const occurring = new Set(living.map(({ machine }) => machine));
  for (const record of records) if (record.kind === 'spawn') occurring.add(record.machine);
  const { actors: _, ...header } = recording.header;
  const own: TraceHeader = {
    ...header,
    machines: header.machines.filter(({ id }) => occurring.has(id)),
    ...(living.length > 0 && { actors: living }),
  };
  return [own, ...records].map(formatTraceLine).join('');
}
