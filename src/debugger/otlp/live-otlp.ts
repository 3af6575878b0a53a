import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError } from '../../runtime/errors.ts';
import { count } from '../../runtime/findings/words.ts';
import { packageVersion } from '../../runtime/package-root.ts';
import { isSameRun, type TraceHeader, type TraceLine, type TraceRecord } from '../../runtime/trace/trace.ts';
import type { TraceOutput } from '../trace/trace-command.ts';
import { TraceLineReader } from '../trace/trace-line.ts';
import { linesOf } from '../trace/trace-part.ts';
import type { PageSource } from '../visualize/page-source.ts';
import { FinishedSpans, type SpanLimits, spanLimits } from './finished-spans.ts';
import { collectorAddress } from './otlp-command.ts';
import { otlpRequests } from './otlp-json.ts';
import type { SendOptions } from './send-otlp.ts';
import { SendQueue } from './send-queue.ts';
import type { OtlpSpan } from './span.ts';

export interface LiveOtlpOptions extends SendOptions, Partial<SpanLimits> {
  readonly searchMs?: number;
  /** Timeout for restoring a broken connection. */
  readonly reconnectMs?: number;
  /** Timeout for sending the waiting requests. */
  readonly endMs?: number;
}

/**
 * `chartpilot trace --attach HOST:PORT --otlp ADDRESS`. A broken connection is restored as long as the same run responds; otherwise the known traces
 * are exported.
 *
 * @throws ChartpilotError FLAG_INVALID, REQUEST_FAILED when the program does not respond, TRACE_INVALID
 */
export async function followOtlp(
  source: PageSource,
  to: string,
  { out, error }: TraceOutput,
  options: LiveOtlpOptions = {},
): Promise<void> {
  const url = collectorAddress(to);
  if (url === undefined)
    throw new ChartpilotError('FLAG_INVALID', `--otlp: --attach requires an http(s) address, got ${to}`, {
      fields: { path: '--otlp', expected: 'an http(s) address', got: to },
    });
  const address = `${url.origin}${url.pathname}`;
  const queue = new SendQueue(url, options, (problem) => error(`${address}: ${problem}\n`));
  // Counters keep memory constant for a program that runs for months.
  const exportedCounts = { traces: 0, spans: 0 };
  let run: FollowedRun | undefined;
  const send = (spans: readonly OtlpSpan[]): void => {
    if (run === undefined) return;
    exportedCounts.traces += new Set(spans.map((span) => span.trace)).size;
    exportedCounts.spans += spans.length;
    for (const request of otlpRequests(run.header, spans, packageVersion())) queue.enqueue(request);
  };
  let trace = await source.read({ follow: true });
  const timer = setInterval(() => send(run?.spans.takeFinished(performance.now()) ?? []), options.searchMs ?? 500);
  let failure: unknown;
  try {
    for (;;) {
      failure = undefined;
      try {
        for await (const line of readLines(trace, source.place)) {
          if (line.kind !== 'header') run?.add(line);
          else if (run === undefined) run = new FollowedRun(line, { ...spanLimits, ...options });
          else if (!isSameRun(run.header, line)) break;
        }
      } catch (problem) {
        if (problem instanceof ChartpilotError) throw problem;
        failure = problem;
      }
      if (failure === undefined) break;
      const reconnectedSource = await reconnect(source, options.reconnectMs ?? 5_000);
      if (reconnectedSource === undefined) break;
      trace = reconnectedSource;
    }
  } finally {
    clearInterval(timer);
    trace.destroy();
    send(run?.spans.takeAll() ?? []);
    await queue.drain(options.endMs ?? 30_000);
    const undeliveredText = queue.lostCount === 0 ? '' : `, ${count(queue.lostCount, 'request')} not delivered`;
    await out(
      `otlp: ${count(exportedCounts.traces, 'trace')}, ${count(exportedCounts.spans, 'span')} → ${address}${undeliveredText}\n`,
    );
  }
  if (failure !== undefined) {
    throw new ChartpilotError(
      'REQUEST_FAILED',
      `${source.place}: connection lost, and the program no longer responds`,
      { hint: 'check whether the program was killed; everything received before was exported', cause: failure },
    );
  }
}

class FollowedRun {
  readonly header: TraceHeader;
  readonly spans: FinishedSpans;
  #lastSeq = 0;

  constructor(header: TraceHeader, options: SpanLimits) {
    this.header = header;
    this.spans = new FinishedSpans(header, options);
  }

  /** Each connection begins with the program's ring buffer, so known records are repeated. */
  add(record: TraceRecord): void {
    if (record.seq <= this.#lastSeq) return;
    this.#lastSeq = record.seq;
    this.spans.add(record);
  }
}

/** An incomplete last line is dropped. */
async function* readLines(trace: Readable, address: string): AsyncGenerator<TraceLine> {
  const invalidTrace = (reason: string): ChartpilotError =>
    new ChartpilotError('TRACE_INVALID', `${address}: ${reason}`);
  const reader = new TraceLineReader();
  for await (const { text, isComplete } of linesOf(trace, invalidTrace)) {
    if (!isComplete) return;
    const line = reader.read(text);
    if (typeof line === 'string') throw invalidTrace(line);
    yield line;
  }
}

async function reconnect(source: PageSource, limitMs: number): Promise<Readable | undefined> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    await sleep(limitMs / 20);
    try {
      return await source.read({ follow: true });
    } catch {
      if (performance.now() >= deadline) return undefined;
    }
  }
}
