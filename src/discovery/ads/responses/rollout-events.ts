/** What follows when the record of a rollout changes: reports for the chart of the stream, and events for its exchange. */
import type {
  AcknowledgementOverdue,
  ClustersAwaitedBy,
  ClustersRemovable,
  ResourcesReady,
} from '../../../../machines/discovery/ads/ads-exchange.ts';
import type { StreamReport } from '../../../../machines/discovery/ads/ads-protocol.ts';
import { isRemovalPending } from '../../../../machines/discovery/ads/cluster-removal.ts';
import {
  awaitedClusters,
  isWaiting,
  type Rollout,
  readyResources,
} from '../../../../machines/discovery/ads/cluster-rollout.ts';

export type RolloutEvent = ResourcesReady | ClustersAwaitedBy | AcknowledgementOverdue | ClustersRemovable;

/** What the chart hears of a change of the record. */
export function* reportsOf(before: Rollout, next: Rollout): Generator<StreamReport> {
  const wasWaiting = isWaiting(before);
  if (isWaiting(next) !== wasWaiting) {
    const typeUrls = [...new Set(next.held.map(({ typeUrl }) => typeUrl))];
    const clusters = awaitedClusters(next);
    yield wasWaiting ? { type: 'clusters.usable' } : { type: 'clusters.awaited', clusters, typeUrls };
  }
  const wasPending = isRemovalPending(before);
  if (isRemovalPending(next) !== wasPending) {
    const clusters = next.retained.map(({ name }) => name);
    yield wasPending ? { type: 'clusters.removed' } : { type: 'clusters.kept', clusters };
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
