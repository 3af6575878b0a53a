/** The message of a condition `Rejected` ends with the name of the reporting replica. */
import { isObject } from '../../../runtime/json-object.ts';
import { scalarNumber } from '../../../runtime/scalar-text.ts';
import {
  pendingReason,
  reconciledCondition,
  rejectedCondition,
  unreportedReason,
} from '../../distribution/object-findings.ts';
import { presenceLeaseOf } from '../../election/replica-presence.ts';
import type { ObjectChange } from '../../kubernetes/store/object-store.ts';

export interface RejectionReport {
  readonly identity: string;
  readonly generation: number;
  readonly message: string;
}

/**
 * Pod name with a random part. Envoy's text cannot forge a signature, because the signature follows it. `told` is the format of versions before
 * 2026-12.
 */
const signature = /^(.*) \((?:reported|told) by ([A-Za-z0-9][A-Za-z0-9._-]{0,300})\)$/s;

export function signMessage(message: string, identity: string): string {
  return `${message} (reported by ${identity})`;
}

/** `undefined` without a report that has a valid signature. */
export function parseReport(conditions: unknown): RejectionReport | undefined {
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  const condition = list.find(
    (conditionEntry) => isObject(conditionEntry) && conditionEntry.type === rejectedCondition,
  );
  if (!isObject(condition) || typeof condition.message !== 'string') return undefined;
  const identity = signature.exec(condition.message)?.[2];
  const generation = scalarNumber(condition.observedGeneration);
  if (identity === undefined || presenceLeaseOf(identity) === undefined || !Number.isFinite(generation))
    return undefined;
  return { identity, generation, message: condition.message };
}

const maxReports = 4_096;

export class RejectionReports {
  readonly #reports = new Map<string, RejectionReport>();
  /** Reports of exited replicas. A repeated report is not in this set: it proves that its replica runs, regardless of the Lease. */
  readonly #endedReports = new WeakSet<RejectionReport>();
  readonly identity: string;
  #onChanged: (key: string, previous: RejectionReport | undefined) => void = () => {};
  #countNeeded: (key: string) => void = () => {};

  constructor(identity: string) {
    this.identity = identity;
  }

  /** @param onChange called when the report about an object is removed, changes its replica or generation, or when its replica exits */
  onChanged(onChange: (key: string, previous: RejectionReport | undefined) => void): void {
    this.#onChanged = onChange;
  }

  /** @param onNeeded called when a status does not contain current counts of all replicas, or not all proxies have applied the object */
  onCountNeeded(onNeeded: (key: string) => void): void {
    this.#countNeeded = onNeeded;
  }

  read(kind: string, changes: readonly ObjectChange[]): void {
    for (const change of changes) {
      const status = change.event === 'delete' ? undefined : change.object.status;
      const key = `${kind}/${change.key}`;
      this.#setReport(key, isObject(status) ? parseReport(status.conditions) : undefined);
      if (isObject(status) && isCountNeeded(status.conditions)) this.#countNeeded(key);
    }
  }

  reportOf(key: string): RejectionReport | undefined {
    return this.#reports.get(key);
  }

  isOwnReport({ identity }: RejectionReport): boolean {
    return identity === this.identity;
  }

  /** The replica has exited and not repeated the report. */
  isEnded(key: string, report: RejectionReport): boolean {
    const previousReport = this.#reports.get(key);
    return (
      previousReport !== undefined &&
      areReportsEqual(previousReport, report) &&
      previousReport.message === report.message &&
      this.#endedReports.has(previousReport)
    );
  }

  get leases(): ReadonlySet<string> {
    const otherReports = [...this.#reports.values()].filter(
      (report) => !this.isOwnReport(report) && !this.#endedReports.has(report),
    );
    return new Set(otherReports.map(({ identity }) => presenceLeaseOf(identity)!));
  }

  onReplicaEnded(lease: string): void {
    for (const [key, report] of this.#reports) {
      if (this.isOwnReport(report) || this.#endedReports.has(report) || presenceLeaseOf(report.identity) !== lease)
        continue;
      this.#endedReports.add(report);
      this.#onChanged(key, report);
    }
  }

  #setReport(key: string, report: RejectionReport | undefined): void {
    const previous = this.#reports.get(key);
    if (previous === undefined ? report === undefined : report !== undefined && areReportsEqual(previous, report)) {
      // A report with a changed count is stored, but requires no action.
      if (report !== undefined && previous?.message !== report.message) this.#reports.set(key, report);
      return;
    }
    if (report === undefined) this.#reports.delete(key);
    else if (previous !== undefined || this.#reports.size < maxReports) this.#reports.set(key, report);
    this.#onChanged(key, previous);
  }
}

const reasonsToCount: readonly unknown[] = [pendingReason, unreportedReason];

function isCountNeeded(conditions: unknown): boolean {
  if (!Array.isArray(conditions)) return false;
  return conditions.some(
    (conditionEntry: unknown) =>
      isObject(conditionEntry) &&
      conditionEntry.type === reconciledCondition &&
      reasonsToCount.includes(conditionEntry.reason),
  );
}

function areReportsEqual(one: RejectionReport, other: RejectionReport): boolean {
  return one.identity === other.identity && one.generation === other.generation;
}
