/**
 * What tests made of traces import (`chartpilot/replay-test`): gives the machines what came from outside in a trace, and
 * compares what they do with what was recorded. Any test runner will do.
 */
import type { AnyStateMachine } from 'xstate';
import { ChartpilotError } from '../../runtime/errors.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { TraceLineReader } from '../trace/trace-line.ts';
import { type Difference, type ReplayReport, replay } from './replay.ts';
import { formatDifference } from './replay-report-text.ts';

export interface ReplayOptions {
  /** Root machines of a program that is not chartpilot's; or those that take the place of machines with the same ids. */
  readonly machines?: readonly AnyStateMachine[];
}

/** A report whose difference is told in words. */
export interface ReplayedLines extends Omit<ReplayReport, 'difference'> {
  /** Undefined when the machines do what was recorded. */
  readonly difference?: string;
  readonly details?: Difference;
}

/**
 * @param lines of a trace, the header first; empty ones are passed over
 * @throws ChartpilotError TRACE_INVALID when they are no trace from its beginning
 */
export async function replayLines(
  lines: readonly string[],
  { machines = [] }: ReplayOptions = {},
): Promise<ReplayedLines> {
  const { header, records } = readLines(lines);
  // Only for traces of ours: somebody else's machines need none of it.
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
