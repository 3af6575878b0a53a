import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { RecordedRun } from '../trace/record-list.ts';
import { spansOf } from './run-spans.ts';
import type { Span } from './span.ts';

export interface SpanLimits {
  /** How long an ended trace must be unchanged before it is exported, because its data may be in several records. */
  readonly settleMs: number;
  /** The same for a trace that has not ended: a disconnected proxy never confirms a push. */
  readonly staleMs: number;
  /** Maximum number of kept records; above it, unfinished traces are exported as they are. */
  readonly mostRecords: number;
}

export const spanLimits: SpanLimits = { settleMs: 2_000, staleMs: 120_000, mostRecords: 50_000 };

/** The cause of a restart, and the first change of a push, precede the record that names the trace. */
const recordsBefore = 2_000;

/** Finds the traces of a running program after they have ended. */
export class FinishedSpans {
  readonly #header: TraceHeader;
  readonly #limits: SpanLimits;
  #records: TraceRecord[] = [];
  #told = new Set<string>();
  #hasNew = false;
  /** Traces that are not exported yet, with the state and time of their last change. */
  #seen = new Map<string, { readonly shape: string; readonly atMs: number }>();

  constructor(header: TraceHeader, { settleMs, staleMs, mostRecords }: SpanLimits = spanLimits) {
    this.#header = header;
    this.#limits = { settleMs, staleMs, mostRecords };
  }

  get kept(): number {
    return this.#records.length;
  }

  add(record: TraceRecord): void {
    this.#records.push(record);
    this.#hasNew = true;
  }

  /** @returns the spans of traces that have ended since the last call */
  take(nowMs: number): Span[] {
    if (!this.#hasNew && this.#seen.size === 0) return [];
    this.#hasNew = false;
    const tooMany = this.#records.length > this.#limits.mostRecords;
    return this.#take((trace, spans) => tooMany || this.#isOver(trace, spans, nowMs));
  }

  /** Must be called at the end of the run. @returns the spans of all traces that are not exported */
  end(): Span[] {
    return this.#take(() => true);
  }

  #take(isOver: (trace: string, spans: readonly Span[]) => boolean): Span[] {
    const all = Map.groupBy(spansOf(new RecordedRun(this.#header, this.#records)), ({ trace }) => trace);
    const told = [...all].filter(([trace, spans]) => !this.#told.has(trace) && isOver(trace, spans));
    for (const [trace] of told) {
      this.#told.add(trace);
      this.#seen.delete(trace);
    }
    this.#forget(all);
    return told.flatMap(([, spans]) => spans);
  }

  #isOver(trace: string, spans: readonly Span[], nowMs: number): boolean {
    const shape = JSON.stringify(spans.map((span) => [span.key, span.from, isOpen(span) ? '' : span.to, span.error]));
    const before = this.#seen.get(trace);
    if (before?.shape !== shape) {
      this.#seen.set(trace, { shape, atMs: nowMs });
      return false;
    }
    const { settleMs, staleMs } = this.#limits;
    return nowMs - before.atMs >= (hasEnded(spans) ? settleMs : staleMs);
  }

  #forget(all: ReadonlyMap<string, readonly Span[]>): void {
    const half = this.#limits.mostRecords / 2;
    if (this.#records.length <= half) return;
    const needed = [...all]
      .filter(([trace]) => !this.#told.has(trace))
      .map(([, spans]) => Number(rootOf(spans).attributes['chartpilot.trace.seq']));
    const first = this.#records.findIndex(({ seq }) => seq >= Math.min(...needed));
    const from = Math.max(0, (first === -1 ? this.#records.length : first) - Math.min(recordsBefore, half));
    this.#records = this.#records.slice(from);
    // A trace whose records were dropped cannot be found again.
    for (const trace of this.#told) if (!all.has(trace)) this.#told.delete(trace);
  }
}

function rootOf(spans: readonly Span[]): Span {
  return spans.find(({ key }) => key === '')!;
}

function isOpen({ attributes }: Span): boolean {
  return attributes['chartpilot.unfinished'] === true;
}

/**
 * A restart has ended when its Envoy was live or its error is known. An open span is no criterion: between two phases
 * none is open.
 */
function hasEnded(spans: readonly Span[]): boolean {
  if (spans.some(isOpen)) return false;
  const isRestart = rootOf(spans).attributes['chartpilot.epoch.name'] !== undefined;
  return !isRestart || spans.some(({ name, error }) => error !== undefined || name === 'initialise');
}
