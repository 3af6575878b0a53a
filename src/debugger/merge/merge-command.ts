import { ChartpilotError } from '../../runtime/errors.ts';
import { formatTraceLine, isSameRun } from '../../runtime/trace/trace.ts';
import { incompleteLineWarnings, openTrace, readRecords, traceFilesOf } from '../trace/read-trace.ts';
import { describeGaps } from '../trace/record-gaps.ts';
import type { TraceOutput } from '../trace/trace-command.ts';
import { requireDifferentFile, writeOutput } from '../write-output.ts';
import { labelsOf } from './labels.ts';
import { describePlacement, type MergedTrace, mergeTraces, type ProgramTrace } from './merge-traces.ts';

/** @throws ChartpilotError FILE_UNREADABLE, TRACE_INVALID or FLAG_INVALID */
export async function mergeInto(path: string, traces: readonly string[], { out, error }: TraceOutput): Promise<void> {
  if (traces.length < 2) {
    throw new ChartpilotError('FLAG_INVALID', `--merge ${path}: expected at least two traces, got ${traces.length}`, {
      hint: 'example: chartpilot trace --merge all.trace a.trace b.trace',
      fields: { path: '--merge', expected: 'at least two traces', got: String(traces.length) },
    });
  }
  requireDifferentFile('--merge', path, traces.flatMap(traceFilesOf));
  const mergedTrace = await merge(traces, error);
  writeOutput('--merge', path, formatMerged(mergedTrace), traces);
  await out(`${placementLines(mergedTrace).join('\n')}\n`);
}

export async function merge(traces: readonly string[], error: (text: string) => void = () => {}): Promise<MergedTrace> {
  const labels = labelsOf(traces);
  const programs: ProgramTrace[] = [];
  for (const [i, path] of traces.entries()) {
    const openedTrace = await openTrace(path);
    if (openedTrace.header.programs !== undefined) {
      await openedTrace.close();
      throw new ChartpilotError('FLAG_INVALID', `${path}: expected the trace of one program, got a merged trace`, {
        hint: 'merge the traces that the programs wrote',
        fields: { path },
      });
    }
    const duplicateProgram = programs.find(({ header }) => isSameRun(header, openedTrace.header));
    if (duplicateProgram !== undefined) {
      await openedTrace.close();
      throw new ChartpilotError('FLAG_INVALID', `${path}: same run as ${duplicateProgram.label}; merge each run once`, {
        fields: { path, got: `the run of ${duplicateProgram.label}` },
      });
    }
    const { records } = await readRecords(openedTrace.records);
    for (const gap of describeGaps(records)) error(`${path}: ${gap}\n`);
    for (const line of incompleteLineWarnings(openedTrace)) error(`${line}\n`);
    programs.push({ label: labels[i]!, header: openedTrace.header, records });
  }
  return mergeTraces(programs);
}

export function formatMerged({ header, records }: MergedTrace): string {
  return [header, ...records].map(formatTraceLine).join('');
}

function placementLines({ placements, arrows, unplaced }: MergedTrace): string[] {
  return [
    ...placements.map((placement) => `${placement.label}: ${describePlacement(placement)}`),
    `messages between programs: ${arrows}; not matched, or out of order in time: ${unplaced}`,
  ];
}
