import type { MergedProgram, TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { RecordedRun } from './record-list.ts';

/** Numbers and times are those of the merged trace; names are those of the program. */
export interface ProgramRun {
  readonly label: string;
  readonly run: RecordedRun;
  readonly indexes: readonly number[];
}

interface GrowingRun extends ProgramRun {
  readonly records: TraceRecord[];
  readonly indexes: number[];
}

export class ProgramRuns {
  readonly #runsByLabel: ReadonlyMap<string, GrowingRun>;

  constructor(header: TraceHeader, programs: readonly MergedProgram[]) {
    const runs = programs.map(({ label, program, pid, foreign }): GrowingRun => {
      const { programs: _, actors, ...commonHeader } = header;
      const ownActors = actors
        ?.filter(({ actor }) => labelOf(actor) === label)
        .map((actor) => stripLabel(actor, label));
      const records: TraceRecord[] = [];
      const singleHeader = {
        ...commonHeader,
        program,
        pid,
        ...(foreign && { foreign }),
        ...(ownActors?.length && { actors: ownActors }),
      };
      return { label, run: new RecordedRun(singleHeader, records), indexes: [], records };
    });
    this.#runsByLabel = new Map(runs.map((run) => [run.label, run]));
  }

  get allRuns(): readonly ProgramRun[] {
    return [...this.#runsByLabel.values()];
  }

  /** @returns the record with the names of its program; `undefined` for a message between programs */
  add(record: TraceRecord, recordIndex: number): { readonly label: string; readonly record: TraceRecord } | undefined {
    const label = programOf(record);
    const run = label === undefined ? undefined : this.#runsByLabel.get(label);
    if (run === undefined) return undefined;
    const ownActors = stripLabel(record, run.label);
    run.records.push(ownActors);
    run.indexes.push(recordIndex);
    return { label: run.label, record: ownActors };
  }
}

function programOf(record: TraceRecord): string | undefined {
  if (record.kind !== 'event') return labelOf(record.actor);
  const [from, to] = [labelOf(record.from), labelOf(record.to)];
  return record.from === 'outside' || from === to ? to : undefined;
}

/** Labels and actor names in a trace of one program contain no colon. */
function labelOf(actor: string): string | undefined {
  const end = actor.indexOf(':');
  return end < 0 ? undefined : actor.slice(0, end);
}

/** In a transition, `from` and `to` are states, not actors. */
function stripLabel<Named extends object>(labelled: Named, label: string): Named {
  const copy = { ...labelled } as Record<string, unknown>;
  const fields = copy.kind === 'event' ? ['from', 'to'] : ['actor', 'parent'];
  for (const field of fields) {
    const name = copy[field];
    if (typeof name === 'string' && name.startsWith(`${label}:`)) copy[field] = name.slice(label.length + 1);
  }
  return copy as Named;
}

export function programRunsOf(header: TraceHeader, records: readonly TraceRecord[]): readonly RecordedRun[] {
  if (header.programs === undefined) return [new RecordedRun(header, records)];
  const runs = new ProgramRuns(header, header.programs);
  for (const [recordIndex, record] of records.entries()) runs.add(record, recordIndex);
  return runs.allRuns.map(({ run }) => run);
}
