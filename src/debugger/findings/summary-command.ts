import { formatPosition } from '../trace/print-trace.ts';
import { incompleteLineWarnings, openTrace, readRecords } from '../trace/read-trace.ts';
import { describeGaps } from '../trace/record-gaps.ts';
import { RecordedRun } from '../trace/record-list.ts';
import type { TraceCommandOptions, TraceOutput } from '../trace/trace-command.ts';
import { formatFindings } from './format-findings.ts';
import { TraceFindings } from './trace-findings.ts';

/** @throws ChartpilotError FILE_UNREADABLE or TRACE_INVALID. */
export async function printSummary(
  path: string,
  { format, clock = false }: Pick<TraceCommandOptions, 'format' | 'clock'>,
  { out, error }: TraceOutput,
): Promise<void> {
  const openedTrace = await openTrace(path);
  const { header } = openedTrace;
  const { records } = await readRecords(openedTrace.records);
  const traceFindings = new TraceFindings(new RecordedRun(header, records));
  traceFindings.addNewRecords();
  const sortedFindings = [...traceFindings.findings, ...traceFindings.finish()].sort((a, b) => a.index - b.index);
  if (format === 'text') {
    const print = clock ? { startedAt: header.startedAt } : {};
    await out(
      `${formatFindings(sortedFindings, traceFindings.brokenRules, records, (record) => formatPosition(record, print)).join('\n')}\n`,
    );
  } else {
    const seqOf = (index: number): number => records[index]!.seq;
    const entries = sortedFindings.map(({ index, range, root, ...finding }) => ({
      ...finding,
      record: seqOf(index),
      range: range.map(seqOf),
      ...(root !== undefined && { root: seqOf(root) }),
    }));
    await out(`${JSON.stringify({ verdicts: entries, broken: traceFindings.brokenRules }, undefined, 2)}\n`);
  }
  for (const gap of describeGaps(records)) error(`${path}: ${gap}: findings may be wrong\n`);
  for (const line of incompleteLineWarnings(openedTrace)) error(`${line}\n`);
}
