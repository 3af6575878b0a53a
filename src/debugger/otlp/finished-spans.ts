import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { RecordedRun } from '../trace/record-list.ts';
import { spansOf } from './run-spans.ts';
import type { OtlpSpan } from './span.ts';

export interface SpanLimits {
  /** How long an ended trace must be unchanged before it is exported, because its data may be in several records. */
  readonly settleMs: number;
  /** Like `settleMs`, for a trace that has not ended: a disconnected proxy never confirms a push. */
  readonly staleMs: number;
  /** Above this number of records, unfinished traces are exported as they are. */
  readonly maxRecords: number;
}

export const spanLimits: SpanLimits = { settleMs: 2_000, staleMs: 120_000, maxRecords: 50_000 };

/** Records kept before those of an unfinished trace: the cause of a restart, or the first change of a push. */
const maxPrecedingRecords = 2_000;

/** Finds the traces of a running program after they have ended. */
export class FinishedSpans {
  readonly #header: TraceHeader;
  readonly #limits: SpanLimits;
  #records: TraceRecord[] = [];
  #exportedTraces = new Set<string>();
  #hasNewRecords = false;
  /** Traces that are not exported yet. */
  #lastSeenByTrace = new Map<string, { readonly spansKey: string; readonly atMs: number }>();

  constructor(header: TraceHeader, { settleMs, staleMs, maxRecords }: SpanLimits = spanLimits) {
    this.#header = header;
    this.#limits = { settleMs, staleMs, maxRecords };
  }

  get keptRecords(): number {
    return this.#records.length;
  }

  add(record: TraceRecord): void {
    this.#records.push(record);
    this.#hasNewRecords = true;
  }

  /** @returns the spans of traces that have ended since the last call */
  takeFinished(nowMs: number): OtlpSpan[] {
    if (!this.#hasNewRecords && this.#lastSeenByTrace.size === 0) return [];
    this.#hasNewRecords = false;
    const hasTooMany = this.#records.length > this.#limits.maxRecords;
    return this.#takeSpans((trace, spans) => hasTooMany || this.#isTraceFinished(trace, spans, nowMs));
  }

  /** Must be called at the end of the run. @returns the spans of all traces that are not exported */
  takeAll(): OtlpSpan[] {
    return this.#takeSpans(() => true);
  }

  #takeSpans(isTraceFinished: (trace: string, spans: readonly OtlpSpan[]) => boolean): OtlpSpan[] {
    const spansByTrace = Map.groupBy(spansOf(new RecordedRun(this.#header, this.#records)), ({ trace }) => trace);
    const finishedTraces = [...spansByTrace].filter(
      ([trace, spans]) => !this.#exportedTraces.has(trace) && isTraceFinished(trace, spans),
    );
    for (const [trace] of finishedTraces) {
      this.#exportedTraces.add(trace);
      this.#lastSeenByTrace.delete(trace);
    }
    this.#dropRecords(spansByTrace);
    return finishedTraces.flatMap(([, spans]) => spans);
  }

  #isTraceFinished(trace: string, spans: readonly OtlpSpan[], nowMs: number): boolean {
    const spansKey = JSON.stringify(
      spans.map((span) => [span.key, span.from, isOpenSpan(span) ? '' : span.to, span.error]),
    );
    const lastState = this.#lastSeenByTrace.get(trace);
    if (lastState?.spansKey !== spansKey) {
      this.#lastSeenByTrace.set(trace, { spansKey, atMs: nowMs });
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
    const firstNeededIndex = this.#records.findIndex(({ seq }) => seq >= Math.min(...neededSeqs));
    const from = Math.max(
      0,
      (firstNeededIndex === -1 ? this.#records.length : firstNeededIndex) -
        Math.min(maxPrecedingRecords, maxKeptRecords),
    );
    this.#records = this.#records.slice(from);
    // A trace whose records were dropped cannot be found again.
    for (const trace of this.#exportedTraces) if (!spansByTrace.has(trace)) this.#exportedTraces.delete(trace);
  }
}

function rootOf(spans: readonly OtlpSpan[]): OtlpSpan {
  return spans.find(({ key }) => key === '')!;
}

function isOpenSpan({ attributes }: OtlpSpan): boolean {
  return attributes['chartpilot.unfinished'] === true;
}

/** Between two phases no span is open, so a restart has only ended when its Envoy was live or its error is known. */
function hasEnded(spans: readonly OtlpSpan[]): boolean {
  if (spans.some(isOpenSpan)) return false;
  const isRestart = rootOf(spans).attributes['chartpilot.epoch.name'] !== undefined;
  return !isRestart || spans.some(({ name, error }) => error !== undefined || name === 'initialise');
}
