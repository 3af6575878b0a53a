import { placeOf } from '../trace/print-trace.ts';
import { halfWritten, openTrace, readRecords } from '../trace/read-trace.ts';
import { gapsIn } from '../trace/record-gaps.ts';
import { RecordedRun } from '../trace/record-list.ts';
import type { TraceCommandOptions, TraceOutput } from '../trace/trace-command.ts';
import { formatVerdicts } from './format-findings.ts';
import { Verdicts } from './trace-findings.ts';

/**
 * `chartpilot trace --summary`: prints the findings of a trace, one sentence each.
 *
 * @throws ChartpilotError FILE_UNREADABLE or TRACE_INVALID.
 */
export async function printSummary(
  path: string,
  { format, clock = false }: Pick<TraceCommandOptions, 'format' | 'clock'>,
  { out, error }: TraceOutput,
): Promise<void> {
  const reading = await openTrace(path);
  const { header } = reading;
  const { records } = await readRecords(reading.records);
  const verdicts = new Verdicts(new RecordedRun(header, records));
  verdicts.grow();
  const all = [...verdicts.found, ...verdicts.atEnd()].sort((a, b) => a.index - b.index);
  if (format === 'text') {
    const print = clock ? { startedAt: header.startedAt } : {};
    await out(`${formatVerdicts(all, verdicts.broken, records, (record) => placeOf(record, print)).join('\n')}\n`);
  } else {
    const seqOf = (index: number): number => records[index]!.seq;
    const told = all.map(({ index, range, root, ...verdict }) => ({
      ...verdict,
      record: seqOf(index),
      range: range.map(seqOf),
      ...(root !== undefined && { root: seqOf(root) }),
    }));
    await out(`${JSON.stringify({ verdicts: told, broken: verdicts.broken }, undefined, 2)}\n`);
  }
  for (const gap of gapsIn(records)) error(`${path}: ${gap}: findings may be wrong\n`);
  for (const line of halfWritten(reading)) error(`${line}\n`);
}
