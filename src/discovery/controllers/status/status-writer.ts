/**
 * Writes the status of objects, for whoever knows what it is to be. An object is read as it is now before it is written, for what a stranger
 * or another controller has put there must stay, and nothing that is the same already is written. What is to be written is asked when it
 * is: the newest counts, and whoever does not lead makes nothing.
 *
 * What is due of an object ends in one of these: it was written; nothing was to be written; the object, or what it was made of, is gone or
 * another one (whoever knows of that says so anew); the API server calls it wrong (told, and left). Everything else stays due.
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

/** Whose status; of what is in no namespace, that is empty. */
export type StatusRef = ConfigKey;

export type StatusFields = Readonly<Record<string, unknown>>;

/** What the status of one object is to be. */
export interface WantedStatus {
  /** Generation of the object that the status was made of: one of another is not written. Absent where the kind has none. */
  readonly generation?: number;
  /**
   * Pure.
   *
   * @param present as it was read, whatever a stranger has made of it; empty where there is none
   * @param time RFC 3339, for what has changed
   * @returns undefined: nothing is to be written
   */
  next(present: StatusFields, time: string): StatusFields | undefined;
}

export interface StatusSource {
  /** Undefined: of this object nothing is to be written (any more). */
  wanted(of: StatusRef): WantedStatus | undefined;
  /** All objects of which there may be something, for a new leader. */
  all(): Iterable<StatusRef>;
}

export interface StatusWriterOptions {
  readonly lease: string;
  readonly source: StatusSource;
  /** Reads. It must be that of the gate. */
  readonly server: Pick<ApiServer, 'request'>;
  /** How the server calls a kind, in the version that it has. */
  readonly resourceOf: (kind: string) => ApiResource;
  /** Between two writes of one object that are not urgent, in milliseconds; by default 0. */
  readonly restMs?: number;
  /** Objects that are read or written at a time; by default {@link mostAtOnce}. */
  readonly atOnce?: number;
  readonly log: Pick<Logger, 'warn'>;
  /** A run ends early while this is so: what is due then waits for the next run. Default: never. */
  readonly isInterrupted?: () => boolean;
  /** Another duty of this process writes the same at present: what is due waits until that is over. By default it never is so. */
  readonly isHeld?: () => boolean;
  /** Annotations of the Lease, read for each renewal. Default: none. */
  readonly leaseAnnotations?: () => Readonly<Record<string, string>>;
  /** Milliseconds, of any beginning. */
  readonly now?: () => number;
  /** RFC 3339 in whole seconds: longer texts would stay as they are in custom resources. */
  readonly time?: () => string;
  /** @returns ends it */
  readonly after?: (ms: number, then: () => void) => () => void;
}

/**
 * No rate by the clock: five a second, client-go's own, kept Contour minutes behind (contour#4134), and one that is right for a large server
 * is wrong for a small one. So many at a time slow down with the server, and are a thirtieth of the requests that a server as it comes works on
 * at once for all service accounts (245, priority level `workload-low`), so that what else this program asks for, renewals among it, has its turn.
 */
export const mostAtOnce = 8;

const readMs = 5_000;
/** How often it is looked whether a duty is still held: nobody tells. */
const heldMs = 2_000;
const never = new AbortController().signal;

/** The object is wrong by the word of the server, and would be the next time. */
const wrongCodes: ReadonlySet<number> = new Set([400, 413, 422]);

export class StatusWriter implements Duty {
  readonly lease: string;
  readonly #options: Required<StatusWriterOptions>;
  readonly #queue: StatusQueue<StatusRef>;
  readonly #watchers = new Set<() => void>();
  #endTimer: (() => void) | undefined;
  #toldDropped = false;
  /** How many objects came to what end, since the start. */
  readonly counts = { written: 0, same: 0, gone: 0, superseded: 0, refused: 0, conflicts: 0 };

  constructor(options: StatusWriterOptions) {
    this.#options = {
      ...{ restMs: 0, atOnce: mostAtOnce, now: () => performance.now() },
      ...{ isHeld: () => false, isInterrupted: () => false, leaseAnnotations: () => ({}) },
      time: () => `${new Date().toISOString().slice(0, 19)}Z`,
      after: (ms, then) => {
        const timer = setTimeout(then, ms);
        return () => clearTimeout(timer);
      },
      ...options,
    };
    this.lease = options.lease;
    this.#queue = new StatusQueue({ ...this.#options, namespaceOf: ({ namespace }) => namespace });
  }

  /** What is wanted of objects may be another: urgent what somebody waits for, the rest once in {@link StatusWriterOptions.restMs}. */
  due(refs: Iterable<StatusRef>, { urgent = true }: { readonly urgent?: boolean } = {}): void {
    const now = this.#options.now();
    for (const ref of refs) this.#queue.add(keyOf(ref), ref, urgent, now);
    if (this.#queue.dropped > 0 && !this.#toldDropped) {
      this.#toldDropped = true;
      this.#options.log.warn('status.queueFull', { objects: this.#queue.size });
    }
    this.#tell();
  }

  leaseAnnotations(): Readonly<Record<string, string>> {
    return this.#options.leaseAnnotations();
  }

  watch(due: () => void): () => void {
    this.#watchers.add(due);
    this.#tell();
    return () => {
      this.#watchers.delete(due);
      if (this.#watchers.size === 0) this.#setTimer(undefined);
    };
  }

  get isDue(): boolean {
    return !this.#options.isHeld() && this.#queue.isDue(this.#options.now());
  }

  async writeDue({ retry, anew }: DutyRun, gate: WriteGate): Promise<DutyReport> {
    const { source, now, atOnce, isHeld } = this.#options;
    if (retry) this.#queue.retry(now());
    if (anew) {
      this.#queue.wakeAll();
      for (const ref of source.all()) this.#queue.add(keyOf(ref), ref, false, now());
    }
    const run: Run = { tried: new Set(), written: 0, reason: '', stopped: false };
    if (!isHeld()) await Promise.all(Array.from({ length: atOnce }, () => this.#work(run, gate)));
    // A server that does not answer, or takes no more, is not asked for the rest.
    if (run.stopped) this.#queue.failDue(now());
    this.#tell();
    return { written: run.written, failed: this.#queue.failed, reason: this.#queue.failed === 0 ? '' : run.reason };
  }

  async #work(run: Run, gate: WriteGate): Promise<void> {
    const { now, log, isInterrupted } = this.#options;
    // Each lane writes one object at least, so that interruptions without end do not stop all writes.
    do {
      const next = this.#queue.take(now(), (key) => !run.tried.has(key));
      if (next === undefined) return;
      const [key, ref] = next;
      run.tried.add(key);
      try {
        await this.#write(key, ref, run, gate);
      } catch (error) {
        const failure: ApiFailure =
          error instanceof ApiError ? error.failure : { kind: 'invalid', message: messageOf(error) };
        if (isGone(failure)) {
          this.counts.gone++;
        } else if (failure.kind === 'status' && wrongCodes.has(failure.code)) {
          this.counts.refused++;
          log.warn('status.writeRejected', { object: key, reason: failure.message });
        } else {
          this.#queue.fail(key, ref);
          // Another writer of the same status was quicker, which is nothing that a person should look at.
          if (failure.kind === 'status' && failure.code === 409) this.counts.conflicts++;
          else run.reason = `${key}: ${failure.message}`;
          run.stopped ||= failure.kind !== 'status' ? failure.kind !== 'invalid' : failure.code === 429;
        }
      }
    } while (!run.stopped && !isInterrupted());
  }

  /** @throws ApiError */
  async #write(key: string, ref: StatusRef, run: Run, gate: WriteGate): Promise<void> {
    const { server, source, resourceOf, now, time } = this.#options;
    // Who does not lead has nothing to read for.
    if (!gate.isOpen) throw new ApiError({ kind: 'aborted', message: 'this replica is not the leader' });
    const wantedBefore = source.wanted(ref);
    if (wantedBefore === undefined) {
      this.counts.same++;
      return;
    }
    const resource = resourceOf(ref.kind);
    const where = { resource, ...(resource.namespaced && { namespace: ref.namespace }), name: ref.name };
    const read = { method: 'GET', ...where, subresource: 'status', timeoutMs: readMs } as const;
    const object = await server.request(read, never);
    // What is wanted may be another one since.
    const wanted = source.wanted(ref);
    const status = wanted && isAbout(object, wanted) ? nextOf(object, wanted, time()) : 'superseded';
    if (typeof status === 'string') {
      this.counts[status]++;
      return;
    }
    const version = object.metadata.resourceVersion ?? '';
    await gate.write({ verb: 'update', ...where, subresource: 'status', version, object: { ...object, status } });
    this.#queue.written(key, now());
    this.counts.written++;
    run.written++;
  }

  #tell(): void {
    if (this.#watchers.size === 0) return;
    const { now, isHeld } = this.#options;
    const heldUntil = this.#queue.size > 0 ? now() + heldMs : undefined;
    this.#setTimer(isHeld() ? heldUntil : this.#queue.nextAt(now()));
    if (this.isDue) for (const watcher of this.#watchers) watcher();
  }

  #setTimer(at: number | undefined): void {
    this.#endTimer?.();
    this.#endTimer = undefined;
    if (at === undefined) return;
    const { after, now } = this.#options;
    this.#endTimer = after(Math.max(at - now(), 1), () => this.#tell());
  }
}

interface Run {
  readonly tried: Set<string>;
  written: number;
  reason: string;
  stopped: boolean;
}

function keyOf({ kind, namespace, name }: StatusRef): string {
  return `${kind}/${namespace}/${name}`;
}

function isGone(failure: ApiFailure): boolean {
  return failure.kind === 'status' && failure.code === 404;
}

function isAbout({ metadata }: KubernetesObject, { generation }: WantedStatus): boolean {
  return generation === undefined || metadata.generation === generation;
}

function nextOf(object: KubernetesObject, wanted: WantedStatus, time: string): StatusFields | 'same' | 'superseded' {
  const present = isObject(object.status) ? object.status : {};
  if (isObservedLater(present, wanted.generation)) return 'superseded';
  const next = wanted.next(present, time);
  return next === undefined || isDeepStrictEqual(present, next) ? 'same' : next;
}
