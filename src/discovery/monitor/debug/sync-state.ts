/** How far a proxy is with one type of resource, in words of Envoy's status service. */
import {
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  routeType,
} from '../../../../machines/discovery/xds/ads-types.ts';
import type { WatchView } from '../../xds/ads-observer.ts';

export type SyncState = 'SYNCED' | 'STALE' | 'NOT_SENT' | 'ERROR';

/** Types whose state tools ask for, with their names in `/debug/syncz`. */
export const syncedTypes: readonly (readonly [name: string, typeUrl: string])[] = [
  ['cluster', clusterType],
  ['listener', listenerType],
  ['route', routeType],
  ['endpoint', endpointType],
  ['extensionconfig', extensionType],
];

/** STALE: it has not answered the last response. ERROR: it rejected that, or the one before and has not answered since. */
export function syncStateOf(watch: WatchView | undefined): SyncState {
  if (watch === undefined || watch.nonceSent === '') return 'NOT_SENT';
  if (watch.nonceAcked === watch.nonceSent) return 'SYNCED';
  return watch.lastError === '' ? 'STALE' : 'ERROR';
}
