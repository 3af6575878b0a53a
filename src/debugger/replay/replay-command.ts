import type { AnyStateMachine } from 'xstate';
import { ChartpilotError, type ErrorCode, explainError } from '../../runtime/errors.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import type { CommandOutput } from '../command-output.ts';
import { loadMachine } from '../generate/load-machine.ts';
import { incompleteLineWarnings, openTrace, requireOneProgram } from '../trace/read-trace.ts';
import { machinesOfProgram } from './program-machines.ts';
import { type ReplayReport, replay } from './replay.ts';
import { formatReplay } from './replay-report-text.ts';

export interface ReplayCommandOptions {
  /** `MODULE#EXPORT`, or the name of a machine of chartpilot. */
  readonly machine?: readonly string[];
  readonly format: 'text' | 'json';
}

/** An entry of the list that `--format json` prints. */
interface ReplayedTrace extends ReplayReport {
  readonly trace: string;
  readonly verdict: 'same' | 'differs';
  readonly files: readonly string[];
  readonly program: string;
  readonly startedAt: string;
  /** `file:line` of incomplete lines, which are ignored. */
  readonly cutOff: readonly string[];
}

interface UnreadableTrace {
  readonly trace: string;
  readonly verdict: 'unreadable';
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly hint?: string };
}

/**
 * `chartpilot replay`. A trace that cannot be read does not stop the others.
 *
 * @returns the exit code: 1 if a trace differs, 2 if a trace could not be read or replayed
 */
export async function replayTraces(
  traces: readonly string[],
  options: ReplayCommandOptions,
  { out, error }: CommandOutput,
): Promise<number> {
  const loadedMachines = await loadMachines(options.machine ?? []);
  const results: (ReplayedTrace | UnreadableTrace)[] = [];
  for (const path of traces) {
    try {
      const result = await replayTrace(path, loadedMachines);
      results.push(result);
      if (options.format === 'text') out(`${formatResult(result)}\n`);
    } catch (cause) {
      if (!(cause instanceof ChartpilotError)) throw cause;
      const { code, message, hint } = cause;
      results.push({ trace: path, verdict: 'unreadable', error: { code, message, ...(hint && { hint }) } });
      error(`chartpilot: ${message.includes(path) ? '' : `${path}: `}${explainError(cause)}\n`);
    }
  }
  if (options.format === 'json') out(`${JSON.stringify(results, undefined, 2)}\n`);
  if (results.some(({ verdict }) => verdict === 'unreadable')) return 2;
  return results.some(({ verdict }) => verdict === 'differs') ? 1 : 0;
}

/**
 * `loadedMachines` have precedence over the machines of the program that wrote the trace.
 *
 * @throws ChartpilotError
 */
async function replayTrace(path: string, loadedMachines: readonly AnyStateMachine[]): Promise<ReplayedTrace> {
  const openedTrace = await openTrace(path);
  const { header, files } = openedTrace;
  const records: TraceRecord[] = [];
  await requireOneProgram(path, openedTrace);
  for await (const record of openedTrace.records) records.push(record);
  const report = replay(header, records, [...machinesOfProgram(header.program), ...loadedMachines]);
  refuseUnusedMachines(loadedMachines, records);
  return {
    trace: path,
    verdict: report.difference === undefined ? 'same' : 'differs',
    files,
    program: header.program,
    startedAt: header.startedAt,
    cutOff: openedTrace.cutOff(),
    ...report,
  };
}

/**
 * Rejects a machine that the replay would not use.
 *
 * @throws ChartpilotError FLAG_INVALID
 */
function refuseUnusedMachines(loadedMachines: readonly AnyStateMachine[], records: readonly TraceRecord[]): void {
  const ids = new Set(records.flatMap((record) => (record.kind === 'spawn' ? (record.machine ?? []) : [])));
  const unusedMachine = loadedMachines.find(({ id }) => !ids.has(id));
  if (unusedMachine === undefined) return;
  const machinesText =
    ids.size === 0 ? 'the trace contains no machines' : `machines of the trace: ${[...ids].join(', ')}`;
  throw new ChartpilotError(
    'FLAG_INVALID',
    `--machine: no actor of the trace runs machine '${unusedMachine.id}'; ${machinesText}`,
    {
      hint: 'the ids of the machine and of the recorded machine must be equal',
      fields: { path: '--machine', expected: [...ids].join(', '), got: unusedMachine.id },
    },
  );
}

async function loadMachines(requests: readonly string[]): Promise<AnyStateMachine[]> {
  const machines: AnyStateMachine[] = [];
  for (const request of requests) {
    const separatorIndex = request.lastIndexOf('#');
    const [machine, name] =
      separatorIndex < 0 ? [request] : [request.slice(0, separatorIndex), request.slice(separatorIndex + 1)];
    const loadedMachine = await loadMachine({ machine: machine!, ...(name !== undefined && { export: name }) });
    machines.push(loadedMachine.machine);
  }
  return machines;
}

function formatResult(result: ReplayedTrace): string {
  const verdict = result.difference === undefined ? 'matches the recording' : 'differs from the recording';
  return [
    visibleLine(`${result.files.join(' + ')}: ${verdict} (${result.program}, started ${result.startedAt})`),
    ...incompleteLineWarnings({ cutOff: () => result.cutOff }),
    formatReplay(result),
  ].join('\n');
}
