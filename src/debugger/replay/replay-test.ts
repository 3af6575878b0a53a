/** The runtime of tests that are generated from traces (`chartpilot/replay-test`). */
import type { AnyStateMachine } from 'xstate';
import { ChartpilotError } from '../../runtime/errors.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { TraceLineReader } from '../trace/trace-line.ts';
import { type Difference, type ReplayReport, replay } from './replay.ts';
import { formatDifference } from './replay-report-text.ts';

export interface ReplayOptions {
  /** Root machines of a program that is not part of chartpilot, or replacements of machines with the same IDs. */
  readonly machines?: readonly AnyStateMachine[];
}

export interface ReplayedLines extends Omit<ReplayReport, 'difference'> {
  /** `undefined` if the machines behave as recorded. */
  readonly difference?: string;
  readonly details?: Difference;
}

/**
 * @param lines the header first; empty lines are ignored
 * @throws ChartpilotError TRACE_INVALID if they are not a trace from its beginning
 */
export async function replayLines(
  lines: readonly string[],
  { machines = [] }: ReplayOptions = {},
): Promise<ReplayedLines> {
  const { header, records } = readLines(lines);
  // Loaded only for traces of chartpilot: other programs do not need these machines.
  const { machinesOfProgram } = await import('./program-machines.ts');
  const { difference, ...report } = replay(header, records, [...machinesOfProgram(header.program), ...machines]);
  return difference === undefined
    ? report
    : { ...report, difference: formatDifference(difference), details: difference };
}

function readLines(lines: readonly string[]): { header: TraceHeader; records: TraceRecord[] } {
  const reader = new TraceLineReader();
  let header: TraceHeader | undefined;
  const records: TraceRecord[] = [];
  for (const [i, text] of lines.entries()) {
    if (text === '') continue;
    const line = reader.read(text);
    if (typeof line === 'string')
      throw new ChartpilotError('TRACE_INVALID', `line ${i + 1}: ${line}`, { fields: { line: i + 1 } });
    if (line.kind !== 'header') records.push(line);
    else header = line;
  }
  if (header === undefined) throw new ChartpilotError('TRACE_INVALID', 'missing header');
  return { header, records };
}
