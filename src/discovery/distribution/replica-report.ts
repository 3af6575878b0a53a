/** Each replica writes a report to its presence Lease. The replica that writes the statuses adds up the reports of its revision. */
import { isObject } from '../../runtime/json-object.ts';
import { reconciledCondition } from './object-findings.ts';
import type { StatusObjects } from './status-objects.ts';

export interface ReportedCount {
  readonly generation: number;
  readonly upToDate: number;
  readonly concerned: number;
}

export interface ReplicaReport {
  /** REVISION. Empty for the default revision. */
  readonly revision: string;
  readonly counts: ReadonlyMap<string, ReportedCount>;
}

export const reportAnnotation = 'chartpilot/distribution';
/** Limits the load on the API server, which stores the Lease at each renewal. */
export const maxReportBytes = 16_384;
/** Beyond this number, the status of an object is `Unknown` until others are complete. */
export const maxReportedObjects = 4_096;
/** An object without the condition `Reconciled` is reported for at most this time. */
const reportWithoutStatusMs = 60_000;

interface OwnCount extends ReportedCount {
  readonly notedAt: number;
  /** 0 if no report contains these counts. */
  readonly report: number;
}

export class OwnCounts {
  readonly #revision: string;
  readonly #counts = new Map<string, OwnCount>();
  #reports = 0;

  constructor(revision: string) {
    this.#revision = revision;
  }

  record(key: string, { generation, upToDate, concerned }: ReportedCount, notedAt: number): void {
    const previous = this.#counts.get(key);
    const count = { generation, upToDate, concerned };
    const report = previous !== undefined && areCountsEqual(previous, count) ? previous.report : 0;
    setLimited(this.#counts, key, { ...count, notedAt, report });
  }

  /**
   * Reports objects whose status does not yet state that all proxies have applied them. If they do not fit, successive reports contain parts, which
   * the reader merges.
   */
  report(now: number, objects: Pick<StatusObjects, 'statusOf'>): string {
    this.#reports++;
    const isDone = (key: string, { generation, upToDate, concerned, notedAt }: OwnCount): boolean => {
      const reconciledStatus = objects.statusOf(key)?.conditions.get(reconciledCondition);
      if (reconciledStatus === undefined) return now - notedAt >= reportWithoutStatusMs;
      return (
        reconciledStatus.status === 'True' &&
        reconciledStatus.observedGeneration === generation &&
        upToDate === concerned
      );
    };
    for (const [key, count] of this.#counts) if (isDone(key, count)) this.#counts.delete(key);
    const start = `{"revision":${JSON.stringify(this.#revision)},"counts":{`;
    const entryTexts: string[] = [];
    let bytes = Buffer.byteLength(start) + 2;
    for (const [key, count] of [...this.#counts].sort(([, one], [, other]) => one.report - other.report)) {
      const { generation, upToDate, concerned } = count;
      const entryText = `${JSON.stringify(key)}:[${generation},${upToDate},${concerned}]`;
      bytes += Buffer.byteLength(entryText) + 1;
      if (bytes > maxReportBytes) break;
      entryTexts.push(entryText);
      this.#counts.set(key, { ...count, report: this.#reports });
    }
    return `${start}${entryTexts.join(',')}}}`;
  }
}

/** @returns the reason if the text is not a report */
export function readReport(text: unknown): ReplicaReport | string {
  if (typeof text !== 'string') return 'no report';
  if (Buffer.byteLength(text) > maxReportBytes) return `more than ${maxReportBytes} bytes`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'not JSON';
  }
  if (!isObject(value) || typeof value.revision !== 'string' || !isObject(value.counts)) return 'not a report';
  const counts = new Map<string, ReportedCount>();
  for (const [key, count] of Object.entries(value.counts)) {
    if (!isWrittenCount(count)) return 'not three counts of an object';
    const [generation, upToDate, concerned] = count;
    counts.set(key, { generation, upToDate, concerned });
  }
  return { revision: value.revision, counts };
}

/** Merges a report into the previous counts, because it contains only changed counts, or as many as fit. */
export function mergeCounts(
  previous: ReadonlyMap<string, ReportedCount>,
  report: ReadonlyMap<string, ReportedCount>,
): ReadonlyMap<string, ReportedCount> {
  const mergedCounts = new Map(previous);
  for (const [key, count] of report) setLimited(mergedCounts, key, count);
  return mergedCounts;
}

function setLimited<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > maxReportedObjects) map.delete(map.keys().next().value!);
}

/** More proxies than a replica can have, so that sums stay exact. */
const maxCount = 1_000_000;

type WrittenCount = readonly [generation: number, upToDate: number, concerned: number];

function isWrittenCount(value: unknown): value is WrittenCount {
  return (
    Array.isArray(value) &&
    value.length === 3 &&
    value.every((number) => Number.isSafeInteger(number) && number >= 0) &&
    value[1] <= value[2] &&
    value[2] <= maxCount
  );
}

function areCountsEqual(one: ReportedCount, other: ReportedCount): boolean {
  return one.generation === other.generation && one.upToDate === other.upToDate && one.concerned === other.concerned;
}

export interface OtherCounts {
  readonly upToDate: number;
  readonly concerned: number;
  /** Running replicas without a report of this generation. */
  readonly unreportedReplicas: readonly string[];
  /** Replicas of other revisions, and exited ones whose proxies may not have reconnected. */
  readonly uncountedReplicas: readonly string[];
}

export interface TotalCount {
  readonly upToDate: number;
  readonly concerned: number;
  readonly unreported?: readonly string[];
  /** Set if another replica writes the status. */
  readonly isOwnOnly?: true;
}

export interface OtherReplicaCounts {
  refresh(): Promise<void>;
  /**
   * @param sinceMs only reports that include each replica that started before this time are used
   * @returns `undefined` if the reports are older
   */
  countsOf(key: string, generation: number, sinceMs: number): OtherCounts | undefined;
  incompleteObjects(): Iterable<readonly [key: string, generation: number]>;
  /** Negative infinity before the first request. */
  readonly readAt: number;
  /** If false, this replica reports only its own proxies. */
  readonly isWriter: boolean;
}

/** @returns `undefined` while the other replicas are unknown */
export function totalOf(
  key: string,
  ownCount: ReportedCount,
  replicas: OtherReplicaCounts | undefined,
  sinceMs: number,
): TotalCount | undefined {
  const { upToDate: ownUpToDate, concerned: ownConcerned } = ownCount;
  if (replicas === undefined) return { upToDate: ownUpToDate, concerned: ownConcerned };
  if (!replicas.isWriter) return { upToDate: ownUpToDate, concerned: ownConcerned, isOwnOnly: true };
  const otherCounts = replicas.countsOf(key, ownCount.generation, sinceMs);
  if (otherCounts === undefined) return undefined;
  const upToDate = ownUpToDate + otherCounts.upToDate;
  const concerned = ownConcerned + otherCounts.concerned;
  const unreportedReplicas =
    concerned === 0
      ? [...otherCounts.unreportedReplicas, ...otherCounts.uncountedReplicas].sort()
      : otherCounts.unreportedReplicas;
  return { upToDate, concerned, ...(unreportedReplicas.length > 0 && { unreported: unreportedReplicas }) };
}
