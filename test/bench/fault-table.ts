/** Table of the cost of faults. Pure. */
import type { LoadReport, TimelineSlice } from '../load/report.ts';
import type { SubjectName } from './subject.ts';

/** Effect of one fault on one subject. */
export interface FaultResult {
  readonly fault: string;
  readonly subject: SubjectName;
  readonly total: number;
  readonly failed: number;
  /** Longest time without a successful new connection. */
  readonly refusedMs: number;
  /** Time from the fault until the newest certificate is served without interruption; `undefined` if never. */
  readonly servedAfterMs: number | undefined;
  /** Failed and total requests by kind of client, e.g. `new 12/800, h2 3/950`. */
  readonly failedByKind: string;
  /** Requests with a new connection, in the second with the most failures. */
  readonly worstSecond: { readonly total: number; readonly failed: number };
  readonly note?: string;
}

/** Maximum cost of a fault for the agent. Absent fields have no limit, because no supervisor can avoid the cost. */
export interface FaultGoal {
  readonly failed?: number;
  readonly refusedMs?: number;
  /** Maximum share of failed new connections in the worst second. */
  readonly failedShareOfNew?: number;
}

/** Returns one sentence per missed goal. */
export function shortfalls({ fault, failed, refusedMs, worstSecond }: FaultResult, goal: FaultGoal): string[] {
  const { failed: mayFail, refusedMs: mayRefuseMs, failedShareOfNew } = goal;
  const share = worstSecond.failed / Math.max(1, worstSecond.total);
  return [
    ...(mayFail === undefined || failed <= mayFail ? [] : [`${failed} failed, the goal is ${mayFail}`]),
    ...(mayRefuseMs === undefined || refusedMs <= mayRefuseMs
      ? []
      : [`refused for ${refusedMs} ms, the goal is ${mayRefuseMs} ms`]),
    ...(failedShareOfNew === undefined || share <= failedShareOfNew
      ? []
      : [`${shareText(worstSecond)} new connections of one second failed, the goal is ${failedShareOfNew * 100} %`]),
  ].map((shortfall) => `${fault}: ${shortfall}`);
}

const shareText = ({ failed, total }: FaultResult['worstSecond']): string => `${failed} of ${total}`;

/**
 * Computes the cost of a fault from the load reports.
 *
 * @param reports reports of all runs, each with its own kinds of clients
 * @param newConnections timeline of the clients that open a connection for each request, until the order to stop: later requests get no response
 */
export function costOf(
  reports: readonly LoadReport[],
  newConnections: readonly TimelineSlice[],
): Pick<FaultResult, 'total' | 'failed' | 'refusedMs' | 'failedByKind' | 'worstSecond'> {
  const failedByKind = reports
    .flatMap(({ kinds }) => Object.entries(kinds))
    .filter(([, { failed }]) => failed > 0)
    .map(([kind, { failed, total }]) => `${kind} ${failed}/${total}`)
    .join(', ');
  return {
    total: reports.reduce((sum, { total }) => sum + total, 0),
    failed: reports.reduce((sum, { failed }) => sum + failed, 0),
    refusedMs: maxSilenceMs(newConnections),
    failedByKind,
    worstSecond: worstSecondOf(newConnections),
  };
}

/** The second with the most failed requests; the first second if none failed. */
function worstSecondOf(timeline: readonly TimelineSlice[]): FaultResult['worstSecond'] {
  const seconds = timeline.map(({ atMs: from }) => {
    const slices = timeline.filter(({ atMs }) => atMs >= from && atMs < from + 1_000);
    const sum = (key: 'total' | 'failed'): number => slices.reduce((total, slice) => total + slice[key], 0);
    return { total: sum('total'), failed: sum('failed') };
  });
  return seconds.reduce((worst, second) => (second.failed > worst.failed ? second : worst), {
    total: seconds[0]?.total ?? 0,
    failed: 0,
  });
}

/**
 * Longest time between two slices with successful requests, in milliseconds.
 *
 * The resolution is one slice: two adjacent slices are no silence. With fewer than two successful slices the result is the duration of the timeline.
 */
export function maxSilenceMs(timeline: readonly TimelineSlice[]): number {
  const sortedSlices = timeline.toSorted((a, b) => a.atMs - b.atMs);
  const succeededAtMs = sortedSlices.filter(({ total, failed }) => total > failed).map(({ atMs }) => atMs);
  if (succeededAtMs.length < 2) return (sortedSlices.at(-1)?.atMs ?? 0) - (sortedSlices[0]?.atMs ?? 0);
  const steps = succeededAtMs.slice(1).map((atMs, index) => atMs - succeededAtMs[index]!);
  const finest = Math.min(...steps);
  return Math.max(...steps) - finest;
}

/** Formats a row for each fault and a column for each subject, then notes below the table. */
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
  const servedText = servedAfterMs === undefined ? 'never' : `${Math.round(servedAfterMs)} ms`;
  return [`${failed}/${total}`, `${refusedMs} ms`, servedText];
}

function remarks({ fault, subject, failedByKind, worstSecond, note }: FaultResult): string[] {
  const seconds = `worst second of new connections: ${shareText(worstSecond)}`;
  const noteTexts = [failedByKind === '' ? [] : [`failed: ${failedByKind}`, seconds], note ?? []].flat();
  return noteTexts.length === 0 ? [] : [`${fault}, ${subject}: ${noteTexts.join('; ')}`];
}
