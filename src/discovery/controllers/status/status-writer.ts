/**
 * Writes object statuses that a source determines. Gets the desired status at the time of the write, so that the newest applies and followers compute
 * nothing. A due object stays due until it is written or unchanged, deleted or replaced, or rejected as invalid.
 */

import { isDeepStrictEqual } from 'node:util';
import type { ConfigKey } from '../../../model/config/config.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { Duty, DutyReport, DutyRun } from '../../election/duty.ts';
import type { WriteGate } from '../../election/write-gate.ts';
import { ApiError, type ApiFailure } from '../../kubernetes/api-failure.ts';
import type { ApiResource } from '../../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../../kubernetes/api-server.ts';
import { isObservedLater } from './status-conditions.ts';
import { StatusQueue } from './status-queue.ts';

/** The namespace is empty for cluster-scoped objects. */
export type StatusRef = ConfigKey;

export type StatusFields = Readonly<Record<string, unknown>>;

export interface DesiredStatus {
  /** `undefined` if the kind has no generation. */
  readonly generation?: number;
  /**
   * Pure.
   *
   * @param currentStatus current status, possibly malformed; empty without one
   * @param time RFC 3339, for changed conditions
   * @returns `undefined` if no write is necessary
   */
  next(currentStatus: StatusFields, time: string): StatusFields | undefined;
}

export interface StatusSource {
  /** `undefined` if the object needs none. */
  desiredStatus(statusRef: StatusRef): DesiredStatus | undefined;
  /** Used by a new leader. */
  allRefs(): Iterable<StatusRef>;
}

export interface StatusWriterOptions {
  readonly lease: string;
  readonly source: StatusSource;
  /** Must be the server of the gate. */
  readonly server: Pick<ApiServer, 'request'>;
  readonly resourceOf: (kind: string) => ApiResource;
  /** Minimum interval of non-urgent writes of an object; default 0. */
  readonly pauseMs?: number;
  readonly maxConcurrent?: number;
  readonly log: Pick<Logger, 'warn'>;
  /** If true, the run ends and the remaining objects wait for the next run. */
  readonly isInterrupted?: () => boolean;
  /** If true, another duty of this process writes the same statuses, so due objects wait. */
  readonly isHeld?: () => boolean;
  /** Read at each renewal. */
  readonly leaseAnnotations?: () => Readonly<Record<string, string>>;
  /** Monotonic clock in milliseconds. */
  readonly now?: () => number;
  /** RFC 3339 without fractions of seconds, because custom resources would store them. */
  readonly time?: () => string;
  readonly schedule?: (ms: number, callback: () => void) => () => void;
}

/**
 * Limits concurrency instead of a rate: client-go's default of five a second kept Contour minutes behind (contour#4134). Eight are a thirtieth of the
 * concurrent requests that a default server allows all service accounts (245, priority level `workload-low`).
 */
export const maxConcurrentWrites = 8;

const readMs = 5_000;
/** Polling interval while {@link StatusWriterOptions.isHeld}. */
const holdPollIntervalMs = 2_000;
const neverAbortedSignal = new AbortController().signal;

const permanentFailureCodes: ReadonlySet<number> = new Set([400, 413, 422]);

export class StatusWriter implements Duty {
  readonly lease: string;
  readonly #options: Required<StatusWriterOptions>;
  readonly #queue: StatusQueue<StatusRef>;
  readonly #watchers = new Set<() => void>();
  #endTimer: (() => void) | undefined;
  #hasReportedDropped = false;
  readonly counts = { written: 0, same: 0, gone: 0, superseded: 0, refused: 0, conflicts: 0 };

  constructor(options: StatusWriterOptions) {
    this.#options = {
      ...{ pauseMs: 0, maxConcurrent: maxConcurrentWrites, now: () => performance.now() },
      ...{ isHeld: () => false, isInterrupted: () => false, leaseAnnotations: () => ({}) },
      time: () => `${new Date().toISOString().slice(0, 19)}Z`,
      schedule: (ms, callback) => {
        const timer = setTimeout(callback, ms);
        return () => clearTimeout(timer);
      },
      ...options,
    };
    this.lease = options.lease;
    this.#queue = new StatusQueue({ ...this.#options, namespaceOf: ({ namespace }) => namespace });
  }

  /** Non-urgent statuses are written after {@link StatusWriterOptions.pauseMs}. */
  markDue(refs: Iterable<StatusRef>, { urgent: isUrgent = true }: { readonly urgent?: boolean } = {}): void {
    const nowMs = this.#options.now();
    for (const ref of refs) this.#queue.add(keyOf(ref), ref, isUrgent, nowMs);
    if (this.#queue.droppedCount > 0 && !this.#hasReportedDropped) {
      this.#hasReportedDropped = true;
      this.#options.log.warn('status.queueFull', { objects: this.#queue.size });
    }
    this.#notifyWatchers();
  }

  leaseAnnotations(): Readonly<Record<string, string>> {
    return this.#options.leaseAnnotations();
  }

  watch(onDue: () => void): () => void {
    this.#watchers.add(onDue);
    this.#notifyWatchers();
    return () => {
      this.#watchers.delete(onDue);
      if (this.#watchers.size === 0) this.#setTimer(undefined);
    };
  }

  get isDue(): boolean {
    return !this.#options.isHeld() && this.#queue.isDue(this.#options.now());
  }

  async writeDue({ retry, includesAll }: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    const { source, now, maxConcurrent, isHeld } = this.#options;
    if (retry) this.#queue.retry(now());
    if (includesAll) {
      this.#queue.enqueueDelayed();
      for (const ref of source.allRefs()) this.#queue.add(keyOf(ref), ref, false, now());
    }
    const run: WriterRun = { triedKeys: new Set(), writtenCount: 0, failureReason: '', isStopped: false };
    if (!isHeld()) await Promise.all(Array.from({ length: maxConcurrent }, () => this.#runWorker(run, writeGate)));
    // The server is unresponsive or overloaded, so the remaining objects wait.
    if (run.isStopped) this.#queue.failDueItems(now());
    this.#notifyWatchers();
    return {
      writtenCount: run.writtenCount,
      failedCount: this.#queue.failedCount,
      reason: this.#queue.failedCount === 0 ? '' : run.failureReason,
    };
  }

  async #runWorker(run: WriterRun, writeGate: WriteGate): Promise<void> {
    const { now, log, isInterrupted } = this.#options;
    // Each slot writes at least one object, so that interruptions cannot stop all writes.
    do {
      const next = this.#queue.dequeueNext(now(), (key) => !run.triedKeys.has(key));
      if (next === undefined) return;
      const [key, ref] = next;
      run.triedKeys.add(key);
      try {
        await this.#write(key, ref, run, writeGate);
      } catch (error) {
        const failure: ApiFailure =
          error instanceof ApiError ? error.failure : { kind: 'invalid', message: messageOf(error) };
        if (isDeleted(failure)) {
          this.counts.gone++;
        } else if (failure.kind === 'status' && permanentFailureCodes.has(failure.code)) {
          this.counts.refused++;
          log.warn('status.writeRejected', { object: key, reason: failure.message });
        } else {
          this.#queue.addFailed(key, ref);
          // Conflicts are counted, but not logged.
          if (failure.kind === 'status' && failure.code === 409) this.counts.conflicts++;
          else run.failureReason = `${key}: ${failure.message}`;
          run.isStopped ||= failure.kind !== 'status' ? failure.kind !== 'invalid' : failure.code === 429;
        }
      }
    } while (!run.isStopped && !isInterrupted());
  }

  /** @throws ApiError */
  async #write(key: string, ref: StatusRef, run: WriterRun, writeGate: WriteGate): Promise<void> {
    const { server, source, resourceOf, now, time } = this.#options;
    if (!writeGate.isOpen) throw new ApiError({ kind: 'aborted', message: 'this replica is not the leader' });
    const previousDesired = source.desiredStatus(ref);
    if (previousDesired === undefined) {
      this.counts.same++;
      return;
    }
    const resource = resourceOf(ref.kind);
    const objectPath = { resource, ...(resource.namespaced && { namespace: ref.namespace }), name: ref.name };
    const readRequest = { method: 'GET', ...objectPath, subresource: 'status', timeoutMs: readMs } as const;
    const object = await server.request(readRequest, neverAbortedSignal);
    // The desired status may have changed during the read.
    const desiredStatus = source.desiredStatus(ref);
    const status =
      desiredStatus && isSameGeneration(object, desiredStatus) ? nextOf(object, desiredStatus, time()) : 'superseded';
    if (typeof status === 'string') {
      this.counts[status]++;
      return;
    }
    const version = object.metadata.resourceVersion ?? '';
    await writeGate.write({
      verb: 'update',
      ...objectPath,
      subresource: 'status',
      version,
      object: { ...object, status },
    });
    this.#queue.markWritten(key, now());
    this.counts.written++;
    run.writtenCount++;
  }

  #notifyWatchers(): void {
    if (this.#watchers.size === 0) return;
    const { now, isHeld } = this.#options;
    const nextPollAt = this.#queue.size > 0 ? now() + holdPollIntervalMs : undefined;
    this.#setTimer(isHeld() ? nextPollAt : this.#queue.nextDueAt(now()));
    if (this.isDue) for (const watcher of this.#watchers) watcher();
  }

  #setTimer(dueAt: number | undefined): void {
    this.#endTimer?.();
    this.#endTimer = undefined;
    if (dueAt === undefined) return;
    const { schedule, now } = this.#options;
    this.#endTimer = schedule(Math.max(dueAt - now(), 1), () => this.#notifyWatchers());
  }
}

interface WriterRun {
  readonly triedKeys: Set<string>;
  writtenCount: number;
  failureReason: string;
  isStopped: boolean;
}

function keyOf({ kind, namespace, name }: StatusRef): string {
  return `${kind}/${namespace}/${name}`;
}

function isDeleted(failure: ApiFailure): boolean {
  return failure.kind === 'status' && failure.code === 404;
}

function isSameGeneration({ metadata }: KubernetesObject, { generation }: DesiredStatus): boolean {
  return generation === undefined || metadata.generation === generation;
}

function nextOf(
  object: KubernetesObject,
  desiredStatus: DesiredStatus,
  time: string,
): StatusFields | 'same' | 'superseded' {
  const presentStatus = isObject(object.status) ? object.status : {};
  if (isObservedLater(presentStatus, desiredStatus.generation)) return 'superseded';
  const next = desiredStatus.next(presentStatus, time);
  return next === undefined || isDeepStrictEqual(presentStatus, next) ? 'same' : next;
}
