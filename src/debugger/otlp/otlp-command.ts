import { ChartpilotError } from '../../runtime/errors.ts';
import { count } from '../../runtime/findings/words.ts';
import { packageVersion } from '../../runtime/package-root.ts';
import { programRunsOf } from '../trace/program-runs.ts';
import { incompleteLineWarnings, openTrace, readRecords } from '../trace/read-trace.ts';
import { describeGaps } from '../trace/record-gaps.ts';
import type { TraceOutput } from '../trace/trace-command.ts';
import { writeOutput } from '../write-output.ts';
import { otlpRequests } from './otlp-json.ts';
import { spansOf } from './run-spans.ts';
import { type SendOptions, sendOtlp } from './send-otlp.ts';

/**
 * @param to an `http(s)` address of a collector, or a file with one request per line, like that of the file exporter of a collector
 * @throws ChartpilotError FILE_UNREADABLE, TRACE_INVALID, FLAG_INVALID or REQUEST_FAILED
 */
export async function exportOtlp(
  path: string,
  to: string,
  { out, error }: TraceOutput,
  options: SendOptions = {},
): Promise<void> {
  const url = collectorAddress(to);
  const openedTrace = await openTrace(path);
  const { records } = await readRecords(openedTrace.records);
  const runs = programRunsOf(openedTrace.header, records).map((run) => ({ header: run.header, spans: spansOf(run) }));
  const spans = runs.flatMap((run) => run.spans);
  for (const line of incompleteLineWarnings(openedTrace)) error(`${line}\n`);
  for (const gap of describeGaps(records)) error(`${path}: ${gap}: spans may be wrong\n`);
  const requests = runs.flatMap((run) => otlpRequests(run.header, run.spans, packageVersion()));
  if (url === undefined) {
    writeOutput('--otlp', to, requests.map((request) => `${JSON.stringify(request)}\n`).join(''), openedTrace.files);
  } else {
    for (const request of requests) {
      const rejectedSpans = await sendOtlp(url, request, options);
      if (rejectedSpans !== undefined) error(`${url.origin}${url.pathname}: ${rejectedSpans}\n`);
    }
  }
  const traces = new Set(spans.map(({ trace }) => trace)).size;
  await out(
    `otlp: ${count(traces, 'trace')}, ${count(spans.length, 'span')} → ${url === undefined ? to : `${url.origin}${url.pathname}`}\n`,
  );
}

/** An address without a path is the base URL of a collector, as for OpenTelemetry's exporters. */
export function collectorAddress(to: string): URL | undefined {
  if (!/^https?:\/\//i.test(to)) {
    // Text that resembles an address is not a file name, even if such a file could exist.
    if (!/^([a-z][a-z\d+.-]*:\/\/|[\w.-]+:\d+(\/|$)|\[[\da-f:]+\]:\d+)/i.test(to)) return undefined;
    throw new ChartpilotError('FLAG_INVALID', `--otlp: must be an http(s) address or a file, got ${to}`, {
      hint: `use http://${to.replace(/^.*:\/\//, '')}, or ./NAME for a file`,
      fields: { path: '--otlp', expected: 'an http(s) address or a file', got: to },
    });
  }
  if (!URL.canParse(to))
    throw new ChartpilotError('FLAG_INVALID', `--otlp: invalid address ${to}`, { fields: { path: '--otlp', got: to } });
  const url = new URL(to);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  return url;
}
