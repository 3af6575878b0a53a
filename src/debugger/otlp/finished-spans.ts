import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { RecordedRun } from '../trace/record-list.ts';
import { spansOf } from './run-spans.ts';
import type { OtlpSpan } from './span.ts';

export interface SpanLimits {
  /** How long an ended trace must be unchanged before it is exported, because its data may be in several records. */
  readonly settleMs: number;
  /** The same for a trace that has not ended: a disconnected proxy never confirms a push. */
  readonly staleMs: number;
  /** Above this number of records, unfinished traces are exported as they are. */
  readonly maxRecords: number;
}

export const spanLimits: SpanLimits = { settleMs: 2_000, staleMs: 120_000, maxRecords: 50_000 };

/** Records kept before those of an unfinished trace: the cause of a restart, or the first change of a push. */
const recordsBefore = 2_000;

/** Finds the traces of a running program after they have ended. */
export class FinishedSpans {
  readonly #header: TraceHeader;
  readonly #limits: SpanLimits;
  #records: TraceRecord[] = [];
  #exportedTraces = new Set<string>();
  #hasNew = false;
  /** Traces that are not exported yet. */
  #lastSeenByTrace = new Map<string, { readonly shape: string; readonly atMs: number }>();

  constructor(header: TraceHeader, { settleMs, staleMs, maxRecords }: SpanLimits = spanLimits) {
    this.#header = header;
    this.#limits = { settleMs, staleMs, maxRecords };
  }

  get keptRecords(): number {
    return this.#records.length;
  }

  add(record: TraceRecord): void {
    this.#records.push(record);
    this.#hasNew = true;
  }

  /** @returns the spans of traces that have ended since the last call */
  takeFinished(nowMs: number): OtlpSpan[] {
    if (!this.#hasNew && this.#lastSeenByTrace.size === 0) return [];
    this.#hasNew = false;
    const hasTooMany = this.#records.length > this.#limits.maxRecords;
    return this.#takeSpans((trace, spans) => hasTooMany || this.#isOver(trace, spans, nowMs));
  }

  /** Must be called at the end of the run. @returns the spans of all traces that are not exported */
  end(): OtlpSpan[] {
    return this.#takeSpans(() => true);
  }

  #takeSpans(isOver: (trace: string, spans: readonly OtlpSpan[]) => boolean): OtlpSpan[] {
    const spansByTrace = Map.groupBy(spansOf(new RecordedRun(this.#header, this.#records)), ({ trace }) => trace);
    const finishedTraces = [...spansByTrace].filter(
      ([trace, spans]) => !this.#exportedTraces.has(trace) && isOver(trace, spans),
    );
    for (const [trace] of finishedTraces) {
      this.#exportedTraces.add(trace);
      this.#lastSeenByTrace.delete(trace);
    }
    this.#dropRecords(spansByTrace);
    return finishedTraces.flatMap(([, spans]) => spans);
  }

  #isOver(trace: string, spans: readonly OtlpSpan[], nowMs: number): boolean {
    const shape = JSON.stringify(spans.map((span) => [span.key, span.from, isOpen(span) ? '' : span.to, span.error]));
    const lastState = this.#lastSeenByTrace.get(trace);
    if (lastState?.shape !== shape) {
      this.#lastSeenByTrace.set(trace, { shape, atMs: nowMs });
      return false;
    }
    const { settleMs, staleMs } = this.#limits;
    return nowMs - lastState.atMs >= (hasEnded(spans) ? settleMs : staleMs);
  }

  #dropRecords(spansByTrace: ReadonlyMap<string, readonly OtlpSpan[]>): void {
    const maxKeptRecords = this.#limits.maxRecords / 2;
    if (this.#records.length <= maxKeptRecords) return;
    const neededSeqs = [...spansByTrace]
      .filter(([trace]) => !this.#exportedTraces.has(trace))
      .map(([, spans]) => Number(rootOf(spans).attributes['chartpilot.trace.seq']));
    const first = this.#records.findIndex(({ seq }) => seq >= Math.min(...neededSeqs));
    const from = Math.max(0, (first === -1 ? this.#records.length : first) - Math.min(recordsBefore, maxKeptRecords));
    this.#records = this.#records.slice(from);
    // A trace whose records were dropped cannot be found again.
    for (const trace of this.#exportedTraces) if (!spansByTrace.has(trace)) this.#exportedTraces.delete(trace);
  }
}

function rootOf(spans: readonly OtlpSpan[]): OtlpSpan {
  return spans.find(({ key }) => key === '')!;
}

function isOpen({ attributes }: OtlpSpan): boolean {
  return attributes['chartpilot.unfinished'] === true;
}

/** Between two phases no span is open, so a restart has only ended when its Envoy was live or its error is known. */
function hasEnded(spans: readonly OtlpSpan[]): boolean {
  if (spans.some(isOpen)) return false;
  const isRestart = rootOf(spans).attributes['chartpilot.epoch.name'] !== undefined;
  return !isRestart || spans.some(({ name, error }) => error !== undefined || name === 'initialise');
}
