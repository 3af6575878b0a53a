/** What follows when the record of a rollout changes: reports for the chart of the stream, and events for its exchange. */
import type {
  AcknowledgementOverdue,
  ClustersAwaitedBy,
  ClustersDue,
  ClustersUnrequested,
  ResourcesReady,
} from '../../../../machines/discovery/ads/ads-exchange.ts';
import type { StreamReport } from '../../../../machines/discovery/ads/ads-protocol.ts';
import { isRemovalPending } from '../../../../machines/discovery/ads/cluster-removal.ts';
import {
  awaitedClusters,
  isLimitRunning,
  isWaiting,
  limitedClusters,
  type Rollout,
  readyResources,
} from '../../../../machines/discovery/ads/cluster-rollout.ts';

export type RolloutEvent =
  | ResourcesReady
  | ClustersAwaitedBy
  | AcknowledgementOverdue
  | ClustersDue
  | ClustersUnrequested;

/** The stream that is reported on. */
export interface ReportedStream {
  /** Reports to the chart. */
  tell(report: StreamReport): void;
  /** Resources begin to wait for clusters, or no longer wait. */
  noteWaiting(isWaiting: boolean): void;
}

/**
 * Reports to the chart of a stream. A report may lead to responses and so to newer records, whose reports come first: each report is about
 * the record of its moment, and is made only if the chart was told otherwise last.
 */
export class RolloutReports {
  readonly #stream: ReportedStream;
  #isWaiting = false;
  #isAwaited = false;
  #isPending = false;

  constructor(stream: ReportedStream) {
    this.#stream = stream;
  }

  /** @param current the record at the time of the call */
  report(current: () => Rollout): void {
    const waiting = isWaiting(current());
    if (waiting !== this.#isWaiting) {
      this.#isWaiting = waiting;
      this.#stream.noteWaiting(waiting);
    }
    const isAwaited = isLimitRunning(current());
    if (isAwaited !== this.#isAwaited) {
      this.#isAwaited = isAwaited;
      const { held } = current();
      const typeUrls = [...new Set(held.map(({ typeUrl }) => typeUrl))];
      const clusters = limitedClusters(current());
      this.#stream.tell(isAwaited ? { type: 'clusters.awaited', clusters, typeUrls } : { type: 'clusters.usable' });
    }
    const pending = isRemovalPending(current());
    if (pending !== this.#isPending) {
      this.#isPending = pending;
      const clusters = current().retained.map(({ name }) => name);
      this.#stream.tell(pending ? { type: 'clusters.kept', clusters } : { type: 'clusters.removed' });
    }
  }
}

/** What the exchange hears of it. */
export function* eventsOf(before: Rollout, next: Rollout, current: string | undefined): Generator<RolloutEvent> {
  for (const typeUrl of new Set(before.held.map((one) => one.typeUrl))) {
    if (typeUrl === current) continue;
    const names = readyResources(next, typeUrl);
    if (names.length > readyResources(before, typeUrl).length) {
      yield { type: 'resources.ready', typeUrl, names, changed: false };
    }
    const awaits = awaitedClusters(next, typeUrl);
    if (awaits.length !== awaitedClusters(before, typeUrl).length) yield { type: 'awaited.changed', typeUrl, awaits };
  }
}
