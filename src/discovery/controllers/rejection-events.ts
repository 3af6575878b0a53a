/**
 * Writes an Event about each object that is rejected or takes only partial effect and whose kind has no status by this control plane. Each namespace
 * has a limit and is served in turn.
 */

import { parseConfigKey } from '../../model/config/config.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { ObjectWarning } from '../distribution/object-warnings.ts';
import { kindsWithEvents, kindsWithWarningEvents } from '../distribution/status-objects.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { ApiError } from '../kubernetes/api-failure.ts';
import { events } from '../kubernetes/api-resource.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { StatusQueue } from './status/status-queue.ts';
import { warningEventOf } from './warning-event.ts';

/** Maximum number of Events per {@link periodMs}. The API server stores each for an hour. */
export const maxEventsOfNamespace = 20;
/** A separate limit, so that warnings do not displace rejections. */
export const maxWarningEventsOfNamespace = 10;
const periodMs = 600_000;
/** Beyond this number, an entry of the largest namespace is dropped. */
const maxQueuedEvents = 10_000;

export interface RejectionEventsOptions {
  readonly lease: string;
  readonly identity: string;
  /** `undefined` if the object was deleted. */
  readonly objectOf: (kind: string, key: string) => KubernetesObject | undefined;
  readonly log: Pick<Logger, 'warn'>;
  /** Monotonic clock in milliseconds. */
  readonly now?: () => number;
  /** RFC 3339. */
  readonly time?: () => string;
}

interface EventRejection {
  /** Key such as `Service/shop/web`. */
  readonly key: string;
  readonly message: string;
  /** `Rejected` or `PortNotFound`, for example. */
  readonly reason: string;
  readonly isWarning?: boolean;
}

export class RejectionEvents implements Duty {
  readonly lease: string;
  readonly #options: Required<RejectionEventsOptions>;
  readonly #queue = new StatusQueue<EventRejection>({
    ...{ pauseMs: 0, maxItems: maxQueuedEvents },
    namespaceOf: ({ key }) => parseConfigKey(key).namespace,
  });
  /** The same Event is not written again, even if the object was valid in the meantime. */
  readonly #writtenEvents = new Map<string, string>();
  readonly #times = new Map<string, number[]>();
  readonly #watchers = new Set<() => void>();
  #warningByKey: ReadonlyMap<string, string> = new Map();
  #isForbidden = false;

  constructor(options: RejectionEventsOptions) {
    this.#options = {
      now: () => performance.now(),
      time: () => `${new Date().toISOString().slice(0, 19)}Z`,
      ...options,
    };
    this.lease = options.lease;
  }

  /**
   * @param key only {@link kindsWithEvents} are reported
   * @param message `undefined` if the object is valid
   */
  report(key: string, message: string | undefined): void {
    const { kind, namespace } = parseConfigKey(key);
    if (!kindsWithEvents.has(kind) || namespace === '' || message === undefined) return;
    this.#add({ key, message, reason: message.includes('LIMIT_EXCEEDED') ? 'LimitExceeded' : 'Rejected' });
  }

  #add(rejection: EventRejection): void {
    const { key } = rejection;
    this.#queue.add(key, rejection, false, this.#options.now());
    for (const notifyDue of this.#watchers) notifyDue();
  }

  /** Unchanged warnings are not written again. */
  setWarnings(warningsByObject: ReadonlyMap<string, ObjectWarning>): void {
    for (const [key, { text, reason }] of warningsByObject) {
      const isEventTarget =
        parseConfigKey(key).namespace !== '' && kindsWithWarningEvents.has(parseConfigKey(key).kind);
      if (isEventTarget && this.#warningByKey.get(key) !== text)
        this.#add({ key, message: text, reason, isWarning: true });
    }
    this.#warningByKey = new Map([...warningsByObject].map(([key, { text }]) => [key, text]));
  }

  watch(onDue: () => void): () => void {
    this.#watchers.add(onDue);
    return () => void this.#watchers.delete(onDue);
  }

  get isDue(): boolean {
    return !this.#isForbidden && this.#queue.isDue(this.#options.now());
  }

  async writeDue({ retry, includesAll }: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    const { now } = this.#options;
    if (includesAll) this.#isForbidden = false;
    if (retry) this.#queue.retry(now());
    const triedKeys = new Set<string>();
    let [writtenCount, reason] = [0, ''];
    while (writeGate.isOpen && !this.#isForbidden) {
      const next = this.#queue.dequeueNext(now(), (key) => !triedKeys.has(key));
      if (next === undefined) break;
      const [key, rejection] = next;
      triedKeys.add(key);
      try {
        if (await this.#write(rejection, writeGate)) writtenCount++;
      } catch (error) {
        reason = messageOf(error);
        const { kind, code } = failureOf(error);
        if (code === 403) this.#forbid(reason);
        // Other errors are permanent: the Event is invalid or its namespace is being deleted.
        else if (kind !== 'status' || code >= 500 || code === 429) this.#queue.addFailed(key, rejection);
        if (kind !== 'status' || code === 429) break;
      }
    }
    return { writtenCount, failedCount: this.#queue.failedCount, reason: this.#queue.failedCount === 0 ? '' : reason };
  }

  /** @throws ApiError */
  async #write({ key, message, reason, isWarning = false }: EventRejection, writeGate: WriteGate): Promise<boolean> {
    const { kind, namespace, name } = parseConfigKey(key);
    const object = this.#options.objectOf(kind, `${namespace}/${name}`);
    if (object === undefined) return false;
    const { identity, time } = this.#options;
    const event = warningEventOf(object, { kind, message, reason, identity, occurredAt: time() });
    if (this.#writtenEvents.get(key) === event.metadata.name || !this.#reserveSlot(namespace, isWarning)) return false;
    try {
      await writeGate.write({ verb: 'create', resource: events, namespace, name: event.metadata.name, object: event });
    } catch (error) {
      // Another replica or an earlier process wrote the Event.
      if (failureOf(error).code !== 409) throw error;
    }
    this.#recordWritten(key, event.metadata.name);
    return true;
  }

  #reserveSlot(namespace: string, isWarning: boolean): boolean {
    const nowMs = this.#options.now();
    const shareKey = `${namespace} ${isWarning}`;
    const times = (this.#times.get(shareKey) ?? []).filter((reportedAt) => reportedAt > nowMs - periodMs);
    if (times.length >= (isWarning ? maxWarningEventsOfNamespace : maxEventsOfNamespace)) return false;
    this.#times.delete(shareKey);
    this.#times.set(shareKey, [...times, nowMs]);
    for (const [oldest, [first]] of this.#times) {
      if (first! > nowMs - periodMs) break;
      this.#times.delete(oldest);
    }
    return true;
  }

  #recordWritten(key: string, event: string): void {
    this.#writtenEvents.delete(key);
    this.#writtenEvents.set(key, event);
    if (this.#writtenEvents.size > maxQueuedEvents)
      this.#writtenEvents.delete(this.#writtenEvents.keys().next().value!);
  }

  #forbid(reason: string): void {
    this.#isForbidden = true;
    this.#options.log.warn('rejectionEvents.forbidden', { reason });
  }
}

function failureOf(error: unknown): { readonly kind: string; readonly code: number } {
  if (!(error instanceof ApiError)) return { kind: 'invalid', code: 0 };
  const { failure } = error;
  return { kind: failure.kind, code: failure.kind === 'status' ? failure.code : 0 };
}
