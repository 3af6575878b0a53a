/** Sends reports about a changed make-before-break record to the chart of the stream and to its exchange, and updates metrics. */
import type {
  AcknowledgementOverdue,
  ClustersAwaitedBy,
  ClustersDue,
  ClustersUnrequested,
  ResourcesReady,
} from '../../../../machines/discovery/xds/ads-exchange.ts';
import type {
  AdsStreamReport,
  ClustersRetained,
  RetentionState,
} from '../../../../machines/discovery/xds/ads-protocol.ts';
import { isRemovalPending } from '../../../../machines/discovery/xds/cluster-removal.ts';
import {
  awaitedClusters,
  hasWaitingResources,
  isLimitRunning,
  limitedClusters,
  newRollout,
  type Rollout,
  readyResources,
} from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type { AdsObserver } from '../ads-observer.ts';

export type RolloutEvent =
  | ResourcesReady
  | ClustersAwaitedBy
  | AcknowledgementOverdue
  | ClustersDue
  | ClustersUnrequested;

export interface ReportedStream {
  onReport(report: AdsStreamReport): void;
  readonly observer: Pick<AdsObserver, 'clustersAwaited' | 'clustersRetained' | 'clustersGivenUp'>;
}

/** A report may lead to newer records, which are reported first. */
export class RolloutReports {
  readonly #stream: ReportedStream;
  #isWaiting = false;
  #isAwaited = false;
  #isPending = false;

  constructor(stream: ReportedStream) {
    this.#stream = stream;
  }

  report(previous: Rollout, current: () => Rollout): void {
    this.#count(previous, current());
    for (const report of retainedBetween(previous, current())) this.#stream.onReport(report);
    const isStillWaiting = hasWaitingResources(current());
    if (isStillWaiting !== this.#isWaiting) {
      this.#isWaiting = isStillWaiting;
      this.#stream.observer.clustersAwaited?.(isStillWaiting);
    }
    const isLimitAwaited = isLimitRunning(current());
    if (isLimitAwaited !== this.#isAwaited) {
      this.#isAwaited = isLimitAwaited;
      const { held } = current();
      const typeUrls = [...new Set(held.map(({ typeUrl }) => typeUrl))];
      const clusters = limitedClusters(current());
      this.#stream.onReport(
        isLimitAwaited ? { type: 'clusters.pending', clusters, typeUrls } : { type: 'clusters.usable' },
      );
    }
    const pending = isRemovalPending(current());
    if (pending !== this.#isPending) {
      this.#isPending = pending;
      const clusters = current().retained.map(({ name }) => name);
      this.#stream.onReport(pending ? { type: 'clusters.lingering', clusters } : { type: 'clusters.removed' });
    }
  }

  end(finalRollout: Rollout): void {
    this.#count(finalRollout, newRollout);
    if (this.#isWaiting) this.#stream.observer.clustersAwaited?.(false);
    this.#isWaiting = false;
  }

  #count(previous: Rollout, next: Rollout): void {
    if (previous.givenUp.length !== next.givenUp.length) {
      this.#stream.observer.clustersGivenUp?.(next.givenUp.length - previous.givenUp.length);
    }
    if (previous.retained === next.retained) return;
    for (const state of retainedStates) {
      const change = countOf(next, state) - countOf(previous, state);
      if (change !== 0) this.#stream.observer.clustersRetained?.(state, change);
    }
  }
}

const retainedStates: readonly RetentionState[] = ['named', 'unacknowledged', 'lingering', 'removable'];

function countOf({ retained }: Rollout, state: RetentionState): number {
  let count = 0;
  for (const cluster of retained) if (cluster.state === state) count++;
  return count;
}

function* retainedBetween(previous: Rollout, { retained }: Rollout): Generator<ClustersRetained> {
  if (previous.retained === retained || retained.length === 0) return;
  const previousStates = new Map(previous.retained.map(({ name, state }) => [name, state]));
  for (const state of retainedStates) {
    const enteredClusters = retained.filter(
      (cluster) => cluster.state === state && previousStates.get(cluster.name) !== state,
    );
    if (enteredClusters.length === 0) continue;
    const clusters = enteredClusters.map(({ name }) => name);
    const unacknowledgedTypes = [...new Set(enteredClusters.flatMap((cluster) => cluster.unacknowledged))];
    yield {
      type: 'clusters.retained',
      state,
      clusters,
      ...(unacknowledgedTypes.length > 0 && { unacknowledged: unacknowledgedTypes }),
    };
  }
}

export function* eventsOf(previous: Rollout, next: Rollout, current: string | undefined): Generator<RolloutEvent> {
  for (const typeUrl of new Set(previous.held.map((heldResource) => heldResource.typeUrl))) {
    if (typeUrl === current) continue;
    const names = readyResources(next, typeUrl);
    if (names.length > readyResources(previous, typeUrl).length) {
      yield { type: 'resources.ready', typeUrl, names, changed: false };
    }
    const awaitedNames = awaitedClusters(next, typeUrl);
    if (awaitedNames.length !== awaitedClusters(previous, typeUrl).length)
      yield { type: 'awaited.changed', typeUrl, awaits: awaitedNames };
  }
}
