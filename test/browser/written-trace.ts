/** Traces that tests write for the page. */
import { memorySource } from '../../src/debugger/visualize/memory-source.ts';
import type { PageSource } from '../../src/debugger/visualize/page-source.ts';
import { formatTraceLine, type TraceBody, type TraceHeader, type TraceRecord } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../fixtures/trace-header.ts';
import type { RecordedLife } from '../simulation/recorded-life.ts';

/** Builds a trace. Records are numbered from 1, one second apart unless they contain a time. */
export function writtenTrace(
  bodies: readonly (TraceBody & { readonly t?: number; readonly seq?: number })[],
  header: Partial<TraceHeader> = {},
): PageSource {
  const records = bodies.map((body, i): TraceRecord => ({ seq: i + 1, t: i * 1_000, ...body }));
  return traceOf({ header: headerWith(header), records });
}

/** A recorded trace. */
export function traceOf({ header, records }: RecordedLife): PageSource {
  return memorySource('written.trace', [header, ...records].map(formatTraceLine).join(''));
}
