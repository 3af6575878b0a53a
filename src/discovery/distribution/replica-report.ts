/**
 * How many proxies of one replica have which objects. Each replica writes this report into the Lease of its presence; the replica that
 * writes the statuses adds the counts of all replicas of its revision.
 */
import { isObject } from '../../runtime/json-object.ts';
import { reconciledCondition } from './object-verdict.ts';
import type { StatusObjects } from './status-objects.ts';

/** Proxies of one replica. */
export interface ReportedCount {
  /** Generation of the object. */
  readonly generation: number;
  readonly upToDate: number;
  readonly concerned: number;
}

export interface ReplicaReport {
  /** REVISION of the replica; empty: the default one. */
  readonly revision: string;
  readonly counts: ReadonlyMap<string, ReportedCount>;
}

/** Annotation of the Lease. */
export const reportAnnotation = 'chartpilot/distribution';
/** The API server stores the whole Lease at each renewal. */
export const maxReportBytes = 16_384;
/** Objects of one replica. The status of an object beyond it is `Unknown` until others are complete. */
export const maxReportedObjects = 4_096;
/** An object without a status of ours is reported for so long: the leader needs one status at most. */
const withoutStatusMs = 60_000;

interface OwnCount extends ReportedCount {
  readonly notedAt: number;
  /** Number of the last report that has it; 0: none has it as it is. */
  readonly report: number;
}

/** Counts of this replica's own proxies. */
export class OwnCounts {
  readonly #revision: string;
  readonly #counts = new Map<string, OwnCount>();
  #reports = 0;

  constructor(revision: string) {
    this.#revision = revision;
  }

  note(key: string, { generation, upToDate, concerned }: ReportedCount, notedAt: number): void {
    const before = this.#counts.get(key);
    const count = { generation, upToDate, concerned };
    const report = before !== undefined && isSame(before, count) ? before.report : 0;
    setWithin(this.#counts, key, { ...count, notedAt, report });
  }

  /**
   * The report as text: counts of objects whose status does not say yet that all proxies have them. If there are more than fit into
   * {@link maxReportBytes}, reports alternate: changed counts come first, then those that were reported longest ago. The reader keeps them.
   */
  report(now: number, objects: Pick<StatusObjects, 'toldOf'>): string {
    this.#reports++;
    const isDone = (key: string, { generation, upToDate, concerned, notedAt }: OwnCount): boolean => {
      const reconciled = objects.toldOf(key)?.conditions.get(reconciledCondition);
      if (reconciled === undefined) return now - notedAt >= withoutStatusMs;
      return reconciled.status === 'True' && reconciled.observedGeneration === generation && upToDate === concerned;
    };
    for (const [key, count] of this.#counts) if (isDone(key, count)) this.#counts.delete(key);
    const start = `{"revision":${JSON.stringify(this.#revision)},"counts":{`;
    const parts: string[] = [];
    let bytes = Buffer.byteLength(start) + 2;
    for (const [key, count] of [...this.#counts].sort(([, one], [, other]) => one.report - other.report)) {
      const { generation, upToDate, concerned } = count;
      const part = `${JSON.stringify(key)}:[${generation},${upToDate},${concerned}]`;
      bytes += Buffer.byteLength(part) + 1;
      if (bytes > maxReportBytes) break;
      parts.push(part);
      this.#counts.set(key, { ...count, report: this.#reports });
    }
    return `${start}${parts.join(',')}}}`;
  }
}

/** @returns why the text is not a report; then nothing is known of the replica's proxies */
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
    if (!isCount(count)) return 'not three counts of an object';
    const [generation, upToDate, concerned] = count;
    counts.set(key, { generation, upToDate, concerned });
  }
  return { revision: value.revision, counts };
}

/** Counts after another report of the same replica: a report has only those that changed, or as many as fit. */
export function mergedCounts(
  before: ReadonlyMap<string, ReportedCount>,
  report: ReadonlyMap<string, ReportedCount>,
): ReadonlyMap<string, ReportedCount> {
  const merged = new Map(before);
  for (const [key, count] of report) setWithin(merged, key, count);
  return merged;
}

/** Adds or replaces an entry; the oldest one makes way for one beyond {@link maxReportedObjects}. */
function setWithin<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > maxReportedObjects) map.delete(map.keys().next().value!);
}

/** More proxies than a replica can have: sums of counts stay exact. */
const maxCount = 1_000_000;

type Written = readonly [generation: number, upToDate: number, concerned: number];

function isCount(value: unknown): value is Written {
  return (
    Array.isArray(value) &&
    value.length === 3 &&
    value.every((number) => Number.isSafeInteger(number) && number >= 0) &&
    value[1] <= value[2] &&
    value[2] <= maxCount
  );
}

function isSame(one: ReportedCount, other: ReportedCount): boolean {
  return one.generation === other.generation && one.upToDate === other.upToDate && one.concerned === other.concerned;
}

/** Counts of the other replicas for one generation of an object. */
export interface OtherCounts {
  readonly upToDate: number;
  readonly concerned: number;
  /** Running replicas of this revision that have not reported this generation. */
  readonly unreported: readonly string[];
  /** Replicas that ended recently, whose proxies may not have reconnected, and replicas of another revision. */
  readonly uncounted: readonly string[];
}

export interface Total {
  readonly upToDate: number;
  readonly concerned: number;
  /** Absent: all are known. */
  readonly unreported?: readonly string[];
  /** Proxies of other replicas are not counted: another replica writes the status. */
  readonly isOwnOnly?: true;
}

export interface OtherReplicaCounts {
  /** Reads the reports, unless that was a short while ago. */
  look(): Promise<void>;
  /**
   * @param since the reports must have been read after this time: a replica that started before it is among them
   * @returns `undefined` while that is not so
   */
  countsOf(key: string, generation: number, since: number): OtherCounts | undefined;
  /** Objects that some replica of this revision reported with a proxy that is not up to date. */
  incomplete(): Iterable<readonly [key: string, generation: number]>;
  /** When the reports were last requested; negative infinity: never. */
  readonly readAt: number;
  /** Whether this replica writes the status for all; the others report their own proxies only. */
  readonly isWriter: boolean;
}

/**
 * Proxies of all replicas of this revision if this replica writes the status; otherwise its own. Uncounted replicas matter only while there is
 * no other proxy: proxies of a replica that ended reconnect, and most objects have proxies elsewhere.
 *
 * @returns `undefined` while the other replicas are not known
 */
export function totalOf(
  key: string,
  own: ReportedCount,
  replicas: OtherReplicaCounts | undefined,
  since: number,
): Total | undefined {
  const { upToDate: ownUpToDate, concerned: ownConcerned } = own;
  if (replicas === undefined) return { upToDate: ownUpToDate, concerned: ownConcerned };
  if (!replicas.isWriter) return { upToDate: ownUpToDate, concerned: ownConcerned, isOwnOnly: true };
  const others = replicas.countsOf(key, own.generation, since);
  if (others === undefined) return undefined;
  const upToDate = ownUpToDate + others.upToDate;
  const concerned = ownConcerned + others.concerned;
  const unreported = concerned === 0 ? [...others.unreported, ...others.uncounted].sort() : others.unreported;
  return { upToDate, concerned, ...(unreported.length > 0 && { unreported }) };
}
