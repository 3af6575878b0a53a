/** `proxyz` and `explain --from` use these texts, so that both show the same reason. */

import { anyCluster } from '../../../../machines/discovery/xds/cluster-rollout.ts';
import type {
  KeptConfigurationWait,
  NamingResource,
  RetentionWait,
  RolloutWait,
  WarmingWait,
} from '../../xds/rollout/rollout-waits.ts';
import { shortType } from '../../xds/short-type.ts';

export interface WaitDescription {
  readonly kind: RolloutWait['kind'];
  /** Name of the resource or cluster; `*` for all clusters. */
  readonly name: string;
  readonly why: string;
}

export function describeWait(wait: RolloutWait): WaitDescription {
  return { kind: wait.kind, name: wait.name, why: reasonOf(wait) };
}

export function clustersText(names: readonly string[]): string {
  return names.map((name) => (name === anyCluster ? 'all' : name)).join(', ');
}

function reasonOf(wait: RolloutWait): string {
  switch (wait.kind) {
    case 'held':
      if (wait.clusters.length === 0) return 'sent next: the proxy can use all clusters that it names';
      return `names clusters that are not warmed yet: ${clustersText(wait.clusters)}`;
    case 'warming':
      return wait.name === anyCluster ? unknownClusters : warmingReason(wait);
    case 'kept':
      return isConfiguration(wait) ? retainedConfigurationText : `not configured, ${retentionReason(wait)}`;
    case 'given up':
      return (
        'not usable, or not acknowledged, within the limit: sent with a time limit of ' +
        `${seconds(wait.fetchMs)} for endpoints and certificates until its configuration changes`
      );
  }
}

const unknownClusters =
  'the proxy reconnected and has not acknowledged clusters: it does not report which of them it cannot use yet';

const retainedConfigurationText =
  'no configured listener uses it, kept until the proxy unsubscribes from it: ' +
  'the proxy has not replaced the listener that uses it, or drains its connections';

function isConfiguration(wait: RetentionWait | KeptConfigurationWait): wait is KeptConfigurationWait {
  return wait.state === 'subscribed';
}

function warmingReason({ state, needs }: WarmingWait): string {
  if (state === 'unsent') return 'not sent yet: the proxy has not acknowledged the clusters that were sent before';
  if (state === 'rejected') return 'rejected by the proxy';
  if (state === 'updating')
    return 'the proxy uses the previous version until it has fetched what the new version needs';
  if (needs === 'assignment') return 'usable when its endpoints are sent';
  return 'usable when the proxy acknowledges clusters: it resolves names, checks health or fetches endpoints or certificates';
}

function retentionReason({ state, namedBy, unacknowledged, drains, maxMs = 0 }: RetentionWait): string {
  const removalText = `removed in at most ${seconds(maxMs)}`;
  switch (state) {
    case 'named':
      return `kept while ${namingText(namedBy)}`;
    case 'unacknowledged':
      return `kept until the proxy acknowledges ${unacknowledged.map(shortType).join(', ')} without it`;
    case 'lingering':
      return drains
        ? `${removalText}: connections of a replaced listener, which may use it, drain`
        : `${removalText}: requests that chose a route before may still use it`;
    case 'removable':
      return maxMs === 0 ? 'removed with the next response' : `${removalText}, or with the next change of clusters`;
  }
}

function namingText(namedBy: NamingResource | undefined): string {
  if (namedBy === undefined) return 'the proxy has not acknowledged its latest listeners and routes';
  if (namedBy === 'held resource') return 'a resource that is held back names it';
  if (namedBy === 'previous stream') return 'the proxy may use listeners and routes of its previous connection';
  return `${shortType(namedBy.typeUrl)} ${namedBy.name} names it`;
}

const seconds = (ms: number): string => `${Math.ceil(ms / 100) / 10} s`;
