import { join, relative } from 'node:path';
import { ChartpilotError, explainError } from '../runtime/errors.ts';
import { packageRoot } from '../runtime/package-root.ts';
import { type CheckReport, TraceChecker } from './check.ts';
import type { Diagram } from './diagram/diagram.ts';
import { loadDiagrams } from './diagram/load.ts';
import { openTrace, type TraceReading } from './read-trace.ts';
import { formatReport } from './report-text.ts';

export interface CheckCommandOptions {
  /** A folder of diagrams, or one; the program's own when absent. */
  diagrams?: string;
  format: 'text' | 'json';
}

export interface CommandOutput {
  out: (text: string) => void;
  error: (text: string) => void;
}

/** The programs whose diagrams are in this package. */
const bundled: Readonly<Record<string, string>> = {
  'pilot-agent': 'machines/agent/sequences',
  'pilot-discovery': 'machines/discovery/sequences',
};

/** What one trace is found to be; `--format json` prints a list of these. */
interface CheckedTrace extends CheckReport {
  trace: string;
  /** All files that the trace was read from, oldest first. */
  files: string[];
  program: string;
  startedAt: string;
  /** Where the last line is half written. */
  cutOff?: string;
}

/**
 * `chartpilot check`: checks each trace for itself.
 *
 * @returns the exit code: 0 all accepted, 1 some trace departs, 2 something could not be read (the others are still told).
 */
export async function checkTraces(
  traces: readonly string[],
  options: CheckCommandOptions,
  { out, error }: CommandOutput,
): Promise<number> {
  const results: CheckedTrace[] = [];
  let unreadable = false;
  for (const path of traces) {
    try {
      const reading = await openTrace(path);
      const diagrams = diagramsFor(reading.header.program, path, options.diagrams);
      const result = await checkOne(path, reading, diagrams);
      results.push(result);
      if (options.format === 'text') out(`${formatResult(result, diagrams)}\n`);
    } catch (cause) {
      if (!(cause instanceof ChartpilotError)) throw cause;
      unreadable = true;
      error(`chartpilot: ${explainError(cause)}\n`);
    }
  }
  if (options.format === 'json') out(`${JSON.stringify(results, undefined, 2)}\n`);
  if (unreadable) return 2;
  return results.some((result) => result.departures.length > 0) ? 1 : 0;
}

async function checkOne(path: string, reading: TraceReading, diagrams: readonly Diagram[]): Promise<CheckedTrace> {
  const checker = new TraceChecker(diagrams);
  for await (const record of reading.records) checker.feed(record);
  const { program, startedAt } = reading.header;
  const cutOff = reading.cutOff();
  return {
    trace: path,
    files: reading.files,
    program,
    startedAt,
    ...(cutOff !== undefined && { cutOff }),
    ...checker.report(),
  };
}

function diagramsFor(program: string, trace: string, given: string | undefined): Diagram[] {
  if (given !== undefined) return loadDiagrams(given);
  const folder = bundled[program];
  if (folder === undefined) {
    throw new ChartpilotError('FLAG_INVALID', `${trace} is of '${program}', whose diagrams are not known`, {
      remedy: 'name the folder that holds them with --diagrams',
    });
  }
  const path = join(packageRoot(), folder);
  const fromHere = relative(process.cwd(), path);
  return loadDiagrams(path, fromHere.startsWith('..') ? path : fromHere);
}

function formatResult(result: CheckedTrace, diagrams: readonly Diagram[]): string {
  const verdict = result.departures.length === 0 ? 'accepted' : 'departs from the sequence diagrams';
  return [
    `${result.files.join(' + ')}: ${verdict} (${result.program}, started ${result.startedAt})`,
    ...(result.cutOff === undefined ? [] : [`${result.cutOff}: the last line is half written and was left out`]),
    formatReport(result, diagrams),
  ].join('\n');
}
