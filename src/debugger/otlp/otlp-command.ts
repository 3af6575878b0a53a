import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChartpilotError } from '../../runtime/errors.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { openTrace, readRecords } from '../trace/read-trace.ts';
import { RecordedRun } from '../trace/record-list.ts';
import type { TraceOutput } from '../trace/trace-command.ts';
import { writeOutput } from '../write-output.ts';
import { lifeSpans } from './life-spans.ts';
import { otlpRequests } from './otlp-json.ts';
import { pushSpans } from './push-spans.ts';
import { restartSpans } from './restart-spans.ts';
import { type SendOptions, sendOtlp } from './send-otlp.ts';
import type { Span } from './span.ts';

/** What operations people look for in a run, as spans. */
export function spansOf(run: RecordedRun): Span[] {
  if (run.header.foreign === true) return lifeSpans(run);
  return [...restartSpans(run), ...pushSpans(run)];
}

/**
 * `chartpilot trace --otlp`: restarts and pushes of a trace as OpenTelemetry traces.
 *
 * @param to an `http(s)` address of a collector, or a file, which gets a request a line, as a collector's file exporter has it
 * @throws ChartpilotError FILE_UNREADABLE, TRACE_INVALID, FLAG_INVALID or REQUEST_FAILED
 */
export async function exportOtlp(
  path: string,
  to: string,
  { out, error }: TraceOutput,
  options: SendOptions = {},
): Promise<void> {
  const url = addressIn(to);
  const reading = await openTrace(path);
  const { header } = reading;
  const spans = spansOf(new RecordedRun(header, (await readRecords(reading.records)).records));
  for (const place of reading.cutOff()) error(`${place}: the line is half written and was left out\n`);
  const requests = otlpRequests(header, spans, version());
  if (url === undefined) {
    writeOutput(to, requests.map((request) => `${JSON.stringify(request)}\n`).join(''));
  } else {
    for (const request of requests) {
      const rejected = await sendOtlp(url, request, options);
      if (rejected !== undefined) error(`${url.origin}${url.pathname}: ${rejected}\n`);
    }
  }
  const traces = new Set(spans.map(({ trace }) => trace)).size;
  await out(
    `otlp: ${traces} traces, ${spans.length} spans → ${url === undefined ? to : `${url.origin}${url.pathname}`}\n`,
  );
}

/** An address without a path is a collector's base, as OpenTelemetry's exporters have it. */
function addressIn(to: string): URL | undefined {
  if (!/^https?:\/\//i.test(to)) return undefined;
  if (!URL.canParse(to)) throw new ChartpilotError('FLAG_INVALID', `--otlp ${to} is no address`);
  const url = new URL(to);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  return url;
}

function version(): string {
  return (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }).version;
}
