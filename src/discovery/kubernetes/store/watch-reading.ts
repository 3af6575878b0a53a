import type { WatchStreamReport } from '../../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { type ApiFailure, failureOfStatus } from '../api-failure.ts';
import { isInitialEventsEnd, type WatchEvent } from '../api-server.ts';
import type { ObjectChange, ObjectStore } from './object-store.ts';

/** Interval of progress reports for an initial list. The chart aborts a list without progress for four seconds. */
const progressMs = 250;

/** All events of a packet are reported together, so that ten thousand objects do not cause as many chart events. */
export class WatchReading {
  readonly #store: ObjectStore;
  readonly #now: () => number;
  readonly #report: (report: WatchStreamReport, changes: readonly ObjectChange[]) => void;
  #isInitialList: boolean;
  #lastReportedAt: number;
  #changes: ObjectChange[] = [];
  #version: string | undefined;
  #hasChanged = false;
  #isPending = false;
  failure: ApiFailure | undefined;

  constructor(
    store: ObjectStore,
    isInitialList: boolean,
    now: () => number,
    report: (report: WatchStreamReport, changes: readonly ObjectChange[]) => void,
  ) {
    this.#store = store;
    this.#isInitialList = isInitialList;
    this.#now = now;
    this.#lastReportedAt = now();
    this.#report = report;
    if (isInitialList) store.beginSet();
  }

  readonly handleEvent = (event: WatchEvent): void => {
    if (event.type === 'ERROR') {
      this.failure = failureOfStatus(event.object);
    } else if (!this.#isInitialList) {
      this.#applyEvent(event);
    } else if (isInitialEventsEnd(event)) {
      this.#isInitialList = false;
      this.#report({ type: 'initial-list.ended', version: event.object.metadata.resourceVersion ?? '' }, []);
    } else if (event.type !== 'BOOKMARK') {
      this.#collect(event);
    }
  };

  readonly flush = (): void => {
    this.#isPending = false;
    const [version, changes] = [this.#version, this.#changes];
    if (version === undefined) return;
    this.#version = undefined;
    this.#changes = [];
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    if (hasChanged) this.#report({ type: 'objects.changed', version, objects: this.#store.size }, changes);
    else this.#report({ type: 'bookmark.received', version }, []);
  };

  #collect({ object }: Exclude<WatchEvent, { type: 'ERROR' }>): void {
    const objects = this.#store.collect(object);
    if (this.#now() - this.#lastReportedAt < progressMs) return;
    this.#lastReportedAt = this.#now();
    this.#report({ type: 'initial-list.progressed', objects }, []);
  }

  #applyEvent(event: Exclude<WatchEvent, { type: 'ERROR' }>): void {
    const { resourceVersion } = event.object.metadata;
    // A watch cannot resume from an event without a version.
    if (resourceVersion === undefined) return;
    if (event.type !== 'BOOKMARK') {
      this.#changes.push(...this.#store.apply(event));
      this.#hasChanged = true;
    }
    this.#version = resourceVersion;
    if (this.#isPending) return;
    this.#isPending = true;
    queueMicrotask(this.flush);
  }
}
