import { basename } from 'node:path';
import { formatTraceLine } from '../../runtime/trace/trace.ts';
import { openTrace, readRecords } from '../trace/read-trace.ts';
import type { TraceOutput } from '../trace/trace-command.ts';
import { writeOutput } from '../write-output.ts';
import { type MergedTrace, mergeTraces, type ProgramTrace, placementInWords } from './merge-traces.ts';

/**
 * `chartpilot trace --merge FILE TRACE…`: writes several programs' traces as one, on one axis; prints where each was put.
 *
 * @throws ChartpilotError FILE_UNREADABLE, TRACE_INVALID or FLAG_INVALID
 */
export async function mergeInto(path: string, traces: readonly string[], { out, error }: TraceOutput): Promise<void> {
  const merged = await merge(traces, error);
  writeOutput(path, formatMerged(merged));
  await out(`${placementLines(merged).join('\n')}\n`);
}

/** Reads traces and puts them on one axis. */
export async function merge(traces: readonly string[], error: (text: string) => void = () => {}): Promise<MergedTrace> {
  const labels = labelsOf(traces);
  const programs: ProgramTrace[] = [];
  for (const [i, path] of traces.entries()) {
    const reading = await openTrace(path);
    const { records } = await readRecords(reading.records);
    for (const place of reading.cutOff()) error(`${place}: the line is half written and was left out\n`);
    programs.push({ label: labels[i]!, header: reading.header, records });
  }
  return mergeTraces(programs);
}

/** As a file has it. */
export function formatMerged({ header, records }: MergedTrace): string {
  return [header, ...records].map(formatTraceLine).join('');
}

/** Where each program was put, and what has no place. */
export function placementLines({ placements, arrows, unplaced }: MergedTrace): string[] {
  return [
    ...placements.map((placement) => `${placement.label}: ${placementInWords(placement)}`),
    `${arrows} arrows between them; ${unplaced} ends of arrows have no other end, or would point back in time`,
  ];
}

/** `gateway` of `traces/gateway.trace.ndjson`; numbered where two files are called alike. */
function labelsOf(traces: readonly string[]): string[] {
  const used = new Map<string, number>();
  return traces.map((path) => {
    const name = basename(path).replace(/\..*$/, '') || 'trace';
    const count = (used.get(name) ?? 0) + 1;
    used.set(name, count);
    return count === 1 ? name : `${name} ${count}`;
  });
}
