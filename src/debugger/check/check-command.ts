import { relative } from 'node:path';
import { ChartpilotError, type ErrorCode, explainError } from '../../runtime/errors.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import type { CommandOutput } from '../command-output.ts';
import { bundledDiagrams } from '../diagram/bundled.ts';
import type { Diagram } from '../diagram/diagram.ts';
import { loadDiagrams } from '../diagram/load.ts';
import { incompleteLineWarnings, openTrace, requireOneProgram, type TraceReading } from '../trace/read-trace.ts';
import { TraceChecker, type TraceCheckReport } from './check.ts';
import { formatReport } from './check-report-text.ts';
import { CheckedMessages } from './message-kinds.ts';
import { MessageWindow } from './message-window.ts';
import { sequenceMermaid } from './sequence-mermaid.ts';

export interface CheckCommandOptions {
  /** A folder of diagrams, or one diagram (default: those of the trace's program). */
  diagrams?: string;
  format: 'text' | 'json' | 'mermaid';
  /** Messages before and after the first deviation (default 20). */
  around?: number;
}

/** An entry of the list that `--format json` prints. */
interface CheckedTrace extends TraceCheckReport {
  trace: string;
  verdict: 'accepted' | 'departs';
  /** Oldest first. */
  files: string[];
  program: string;
  startedAt: string;
  /** `file:line` of incomplete lines, which are ignored. */
  cutOff: readonly string[];
}

interface UnreadableTrace {
  trace: string;
  verdict: 'unreadable';
  error: { code: ErrorCode; message: string; hint?: string };
}

const defaultContext = 20;

/**
 * `chartpilot check`. A trace that cannot be read does not stop the others.
 *
 * @returns the exit code: 1 if a trace deviates, 2 if a trace or diagram could not be read
 */
export async function checkTraces(
  traces: readonly string[],
  options: CheckCommandOptions,
  { out, error }: CommandOutput,
): Promise<number> {
  if (options.format === 'mermaid' && traces.length > 1) {
    throw new ChartpilotError('FLAG_INVALID', `--format mermaid: expected one trace, got ${traces.length}`, {
      hint: 'run the command once for each trace',
      fields: { path: '--format', expected: 'one trace', got: String(traces.length) },
    });
  }
  const results: (CheckedTrace | UnreadableTrace)[] = [];
  for (const path of traces) {
    try {
      const { result, text } = await checkTraceFile(path, options);
      results.push(result);
      if (text !== undefined) out(text);
    } catch (cause) {
      if (!(cause instanceof ChartpilotError)) throw cause;
      const { code, message, hint } = cause;
      results.push({
        trace: path,
        verdict: 'unreadable',
        error: { code, message, ...(hint !== undefined && { hint }) },
      });
      error(`chartpilot: ${explainError(cause)}\n`);
    }
  }
  if (options.format === 'json') out(`${JSON.stringify(results, undefined, 2)}\n`);
  const resultKinds = new Set(results.map(({ verdict }) => verdict));
  if (resultKinds.has('unreadable')) return 2;
  return resultKinds.has('departs') ? 1 : 0;
}

async function checkTraceFile(
  path: string,
  options: CheckCommandOptions,
): Promise<{ result: CheckedTrace; text?: string }> {
  const openedTrace = await openTrace(path);
  try {
    await requireOneProgram(path, openedTrace);
    const diagrams = diagramsFor(openedTrace.header.program, path, options.diagrams);
    if (options.format === 'mermaid')
      return await drawTraceFile(path, openedTrace, diagrams, options.around ?? defaultContext);
    const checker = new TraceChecker(diagrams, openedTrace.header);
    for await (const record of openedTrace.records) checker.feed(record);
    const result = resultOf(path, openedTrace, checker);
    return { result, ...(options.format === 'text' && { text: `${formatResult(result, diagrams)}\n` }) };
  } finally {
    await openedTrace.close();
  }
}

async function drawTraceFile(
  path: string,
  openedTrace: TraceReading,
  diagrams: readonly Diagram[],
  contextSize: number,
): Promise<{ result: CheckedTrace; text: string }> {
  const checker = new TraceChecker(diagrams, openedTrace.header);
  const checkedMessages = new CheckedMessages(diagrams, openedTrace.header);
  const window = new MessageWindow(contextSize);
  for await (const record of openedTrace.records) {
    const deviations = checker.feed(record);
    const message = checkedMessages.read(record);
    if (message !== undefined) window.add(message, deviations);
  }
  const result = resultOf(path, openedTrace, checker);
  return { result, text: formatDrawing(result, window) };
}

function resultOf(path: string, openedTrace: TraceReading, checker: TraceChecker): CheckedTrace {
  const report = checker.report();
  return {
    trace: path,
    verdict: report.departures.length === 0 ? 'accepted' : 'departs',
    files: openedTrace.files,
    program: openedTrace.header.program,
    startedAt: openedTrace.header.startedAt,
    cutOff: openedTrace.cutOff(),
    ...report,
  };
}

function diagramsFor(program: string, trace: string, diagramsPath: string | undefined): Diagram[] {
  if (diagramsPath !== undefined) return loadDiagrams(diagramsPath);
  const path = bundledDiagrams(program);
  if (path === undefined) {
    throw new ChartpilotError('FLAG_INVALID', `${trace}: no sequence diagrams are known for program '${program}'`, {
      hint: 'name a directory of *.mmd files with --diagrams',
      fields: { path: trace, got: program },
    });
  }
  const fromHere = relative(process.cwd(), path);
  return loadDiagrams(path, fromHere.startsWith('..') ? path : fromHere);
}

function formatResult(result: CheckedTrace, diagrams: readonly Diagram[]): string {
  return [
    resultLine(result),
    ...incompleteLineWarnings({ cutOff: () => result.cutOff }),
    formatReport(result, diagrams),
  ].join('\n');
}

function resultLine({ files, verdict, program, startedAt }: CheckedTrace): string {
  const conclusion = verdict === 'accepted' ? 'matches the sequence diagrams' : 'deviates from the sequence diagrams';
  return visibleLine(`${files.join(' + ')}: ${conclusion} (${program}, started ${startedAt})`);
}

function formatDrawing(result: CheckedTrace, window: MessageWindow): string {
  const { deviations, messages, omittedCounts } = window;
  const { counts } = result;
  const followingLines = [
    ...(omittedCounts.later > 0 ? [`${omittedCounts.later} later messages are not shown`] : []),
    ...(counts.departures > deviations.length
      ? [`${counts.departures - deviations.length} more deviations among them`]
      : []),
  ];
  return sequenceMermaid({
    about: [
      resultLine(result),
      `${counts.records} records, ${counts.departures} deviations`,
      ...(counts.lost > 0 ? [`${counts.lost} records are missing from the trace`] : []),
    ],
    messages,
    deviations,
    ...(omittedCounts.earlier > 0 && { above: `${omittedCounts.earlier} earlier messages are not shown` }),
    ...(messages.length === 0
      ? { below: 'no message of the diagrams' }
      : followingLines.length > 0 && { below: followingLines.join(', ') }),
  });
}
