import { formatTraceLine, type TraceHeader } from '../../src/runtime/trace/trace.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import type { ExportedRange } from './exported-range.ts';

/** The header lists the actors that lived before the part, so that the part can be opened like any trace that begins late. */
export function minimalTrace(recording: PageRecording, exportedRange: ExportedRange): string {
  const { first, last } = exportedRange;
  const liveActors = [...recording.stateAt(first - 1).actors.values()];
  const { actors: _, ...header } = recording.header;
  const partHeader: TraceHeader = {
    ...header,
    machines: machinesWithin(recording, exportedRange),
    ...(liveActors.length > 0 && { actors: liveActors }),
  };
  return [partHeader, ...recording.recordsIn(first, last)].map(formatTraceLine).join('');
}

export function machinesWithin(recording: PageRecording, { first, last }: ExportedRange): TraceHeader['machines'] {
  const occurringMachines = new Set([...recording.stateAt(first - 1).actors.values()].map(({ machine }) => machine));
  for (const record of recording.recordsIn(first, last)) {
    if (record.kind === 'spawn') occurringMachines.add(record.machine);
  }
  return recording.header.machines.filter(({ id }) => occurringMachines.has(id));
}
