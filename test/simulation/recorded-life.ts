/** The trace of a simulated agent's life, in virtual time; events are written as in random schedules. */
import type { TraceHeader, TraceLine, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { randomAgent } from './random-effects.ts';
import { run } from './random-run.ts';
import type { Step } from './random-schedule.ts';

export interface RecordedLife {
  readonly header: TraceHeader;
  readonly records: readonly TraceRecord[];
}

/** Records an agent from its first start to its ordered end, unless it ends earlier. */
export function recordedLife(steps: readonly Step[]): RecordedLife {
  const lines: TraceLine[] = [];
  run(
    { settings: 'short times', startConditions: 'in order', durationSeed: 0, steps: [...steps], ending: 'in trouble' },
    {
      agent: randomAgent({}),
      invariants: [],
      sink: { write: (line) => void lines.push(structuredClone(line)), flush: () => {}, close: () => {} },
    },
  );
  const [header, ...records] = lines;
  return { header: header as TraceHeader, records: records as TraceRecord[] };
}

/** Number of the first record of a kind in an actor's life: absolute numbers change with each new actor. */
export function numberOf(life: RecordedLife, kind: TraceRecord['kind'], actor: string): number {
  const matchingRecord = life.records.find(
    (record) => record.kind === kind && 'actor' in record && record.actor === actor,
  );
  if (matchingRecord === undefined) throw new Error(`no ${kind} of ${actor} in this life`);
  return matchingRecord.seq;
}
