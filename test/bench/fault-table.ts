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
  /** Of the requests that open a connection, those of the second in which most of them failed. */
  readonly worstSecond: { readonly total: number; readonly failed: number };
  readonly note?: string;
}

/** What a fault may cost the agent. Absent: it has a price that no supervisor can avoid. */
export interface Goal {
  readonly failed?: number;
  readonly refusedMs?: number;
  /** Of the new connections of the worst second. */
  readonly failedShareOfNew?: number;
}

/** In what a result falls short of its goal, one sentence each. */
export function shortfalls({ fault, failed, refusedMs, worstSecond }: FaultResult, goal: Goal): string[] {
  const { failed: mayFail, refusedMs: mayRefuseMs, failedShareOfNew } = goal;
  const share = worstSecond.failed / Math.max(1, worstSecond.total);
  return [
    ...(mayFail === undefined || failed <= mayFail ? [] : [`${failed} failed, the goal is ${mayFail}`]),
    ...(mayRefuseMs === undefined || refusedMs <= mayRefuseMs
      ? []
      : [`refused for ${refusedMs} ms, the goal is ${mayRefuseMs} ms`]),
    ...(failedShareOfNew === undefined || share <= failedShareOfNew
      ? []
      : [`${inWords(worstSecond)} new connections of one second failed, the goal is ${failedShareOfNew * 100} %`]),
  ].map((what) => `${fault}: ${what}`);
}

const inWords = ({ failed, total }: FaultResult['worstSecond']): string => `${failed} of ${total}`;

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
): Pick<FaultResult, 'total' | 'failed' | 'refusedMs' | 'failedByKind' | 'worstSecond'> {
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
    worstSecond: worstSecondOf(newConnections),
  };
}

/** The second of a run in which most requests failed; the first one where none did. */
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

function remarks({ fault, subject, failedByKind, worstSecond, note }: FaultResult): string[] {
  const seconds = `worst second of new connections: ${inWords(worstSecond)}`;
  const words = [failedByKind === '' ? [] : [`failed: ${failedByKind}`, seconds], note ?? []].flat();
  return words.length === 0 ? [] : [`${fault}, ${subject}: ${words.join('; ')}`];
}
