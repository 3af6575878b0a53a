/** What faults cost, as a table. Pure. */
import type { LoadReport, TimelineSlice } from '../load/report.ts';
import type { SubjectName } from './subject.ts';

/** What one fault did to one subject. */
export interface FaultResult {
  readonly fault: string;
  readonly subject: SubjectName;
  readonly total: number;
  readonly failed: number;
  /** The longest time in which no new connection got an answer. */
  readonly refusedMs: number;
  /** From the fault until the newest certificate was served for good; undefined: never. */
  readonly servedAfterMs: number | undefined;
  /** `new 12/800, h2 3/950`: failed requests by kind of client, and how many there were. */
  readonly failedByKind: string;
  readonly note?: string;
}

/**
 * The figures of the load that a fault was done to.
 *
 * @param reports of all runs, each with kinds of clients of its own
 * @param newConnections timeline of the clients that open a connection for each request, up to the order to stop:
 * afterwards there are no more answers
 */
export function costOf(
  reports: readonly LoadReport[],
  newConnections: readonly TimelineSlice[],
): Pick<FaultResult, 'total' | 'failed' | 'refusedMs' | 'failedByKind'> {
  const failedByKind = reports
    .flatMap(({ kinds }) => Object.entries(kinds))
    .filter(([, { failed }]) => failed > 0)
    .map(([kind, { failed, total }]) => `${kind} ${failed}/${total}`)
    .join(', ');
  return {
    total: reports.reduce((sum, { total }) => sum + total, 0),
    failed: reports.reduce((sum, { failed }) => sum + failed, 0),
    refusedMs: longestSilenceMs(newConnections),
    failedByKind,
  };
}

/**
 * The longest time between two slices of a run in which some request succeeded, in milliseconds.
 *
 * Only as fine as the slices, and as the clients are busy: two neighbouring ones are no silence. Without two such slices
 * it is the time that the timeline spans.
 */
export function longestSilenceMs(timeline: readonly TimelineSlice[]): number {
  const sorted = timeline.toSorted((a, b) => a.atMs - b.atMs);
  const answered = sorted.filter(({ total, failed }) => total > failed).map(({ atMs }) => atMs);
  if (answered.length < 2) return (sorted.at(-1)?.atMs ?? 0) - (sorted[0]?.atMs ?? 0);
  const steps = answered.slice(1).map((atMs, index) => atMs - answered[index]!);
  const finest = Math.min(...steps);
  return Math.max(...steps) - finest;
}

/** A row for each fault, the subjects beside each other; then what the figures do not say. */
export function formatFaultTable(results: readonly FaultResult[], subjects: readonly SubjectName[]): string {
  const faults = [...new Set(results.map(({ fault }) => fault))];
  const of = (fault: string, subject: SubjectName): FaultResult | undefined =>
    results.find((result) => result.fault === fault && result.subject === subject);
  const rows = [
    ['fault', ...subjects.flatMap((subject) => [`${subject}: failed`, 'refused for', 'served after'])],
    ...faults.map((fault) => [fault, ...subjects.flatMap((subject) => cells(of(fault, subject)))]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '),
  );
  return [...lines, '', ...results.flatMap(remarks)].join('\n');
}

function cells(result: FaultResult | undefined): string[] {
  if (result === undefined) return ['-', '-', '-'];
  const { failed, total, refusedMs, servedAfterMs } = result;
  const served = servedAfterMs === undefined ? 'never' : `${Math.round(servedAfterMs)} ms`;
  return [`${failed}/${total}`, `${refusedMs} ms`, served];
}

function remarks({ fault, subject, failedByKind, note }: FaultResult): string[] {
  const words = [failedByKind === '' ? [] : `failed: ${failedByKind}`, note ?? []].flat();
  return words.length === 0 ? [] : [`${fault}, ${subject}: ${words.join('; ')}`];
}
