/** What comes over one watch, as a store and a chart are told of it. */
import type { StreamReport } from '../../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { type ApiFailure, failureOfStatus } from '../api-failure.ts';
import { endsInitialEvents, type WatchEvent } from '../api-server.ts';
import type { ObjectChange, ObjectStore } from './object-store.ts';

/** So often a chart is told that a first list goes on; it gives up what has not for four seconds. */
const progressMs = 250;

/**
 * What comes over one watch. What came with one packet is told at once, in order: a list of ten thousand objects is not as many events
 * of a chart.
 */
export class WatchReading {
  readonly #store: ObjectStore;
  readonly #now: () => number;
  readonly #tell: (report: StreamReport, changes: readonly ObjectChange[]) => void;
  #isInitial: boolean;
  #toldAt: number;
  #changes: ObjectChange[] = [];
  #version: string | undefined;
  #isMoved = false;
  #isPending = false;
  failure: ApiFailure | undefined;

  constructor(
    store: ObjectStore,
    initial: boolean,
    now: () => number,
    tell: (report: StreamReport, changes: readonly ObjectChange[]) => void,
  ) {
    this.#store = store;
    this.#isInitial = initial;
    this.#now = now;
    this.#toldAt = now();
    this.#tell = tell;
    if (initial) store.beginSet();
  }

  readonly take = (event: WatchEvent): void => {
    if (event.type === 'ERROR') {
      this.failure = failureOfStatus(event.object);
    } else if (!this.#isInitial) {
      this.#follow(event);
    } else if (endsInitialEvents(event)) {
      this.#isInitial = false;
      this.#tell({ type: 'initial.ended', version: event.object.metadata.resourceVersion ?? '' }, []);
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
    const isMoved = this.#isMoved;
    this.#isMoved = false;
    if (isMoved) this.#tell({ type: 'objects.changed', version, objects: this.#store.size }, changes);
    else this.#tell({ type: 'bookmark.received', version }, []);
  };

  #collect({ object }: Exclude<WatchEvent, { type: 'ERROR' }>): void {
    const objects = this.#store.holdApart(object);
    if (this.#now() - this.#toldAt < progressMs) return;
    this.#toldAt = this.#now();
    this.#tell({ type: 'initial.progressed', objects }, []);
  }

  #follow(event: Exclude<WatchEvent, { type: 'ERROR' }>): void {
    const { resourceVersion } = event.object.metadata;
    // From what has no version nobody could go on.
    if (resourceVersion === undefined) return;
    if (event.type !== 'BOOKMARK') {
      this.#changes.push(...this.#store.apply(event));
      this.#isMoved = true;
    }
    this.#version = resourceVersion;
    if (this.#isPending) return;
    this.#isPending = true;
    queueMicrotask(this.flush);
  }
}
