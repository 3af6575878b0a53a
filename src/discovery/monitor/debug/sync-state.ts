/** Sync state of a resource type at a proxy, in terms of Envoy's client status service. */
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../../../machines/discovery/xds/ads-types.ts';
import type { WatchView } from '../../xds/ads-observer.ts';

export type SyncState = 'SYNCED' | 'STALE' | 'NOT_SENT' | 'ERROR';

export const syncedTypes: readonly (readonly [name: string, typeUrl: string])[] = [
  ['cluster', clusterType],
  ['listener', listenerType],
  ['route', routeType],
  ['endpoint', endpointType],
  ['extensionconfig', extensionType],
];

/**
 * The state is STALE if the last response is not acknowledged, and ERROR if it was rejected, or is not acknowledged and the previous one was
 * rejected.
 */
export function syncStateOf(watch: WatchView | undefined): SyncState {
  if (watch === undefined || watch.nonceSent === '') return 'NOT_SENT';
  if (watch.nonceAcked === watch.nonceSent) return 'SYNCED';
  return watch.lastError === '' ? 'STALE' : 'ERROR';
}
