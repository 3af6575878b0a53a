/** Order of endpoints by a service's own wish to be served nearby (spec/discovery.md §5.2, trafficDistribution). */
import type { Endpoint, TrafficDistribution } from '../../model/services/service.ts';

/** Where a client is. */
export interface Place {
  readonly network: string;
  /** `region/zone/subzone`. */
  readonly locality: string;
  /** The Kubernetes node; empty when nobody says. */
  readonly node: string;
}

/** What near means for each setting, from what counts most to what counts least. */
const levels: Readonly<Record<TrafficDistribution, readonly ((place: Place) => string)[]>> = {
  PreferSameZone: [({ network }) => network, part(0), part(1)],
  PreferSameNode: [({ network }) => network, part(0), part(1), part(2), ({ node }) => node],
};

/** 0 for the nearest; one more for each level, from the first that differs on. */
export function topologyDistance(endpoint: Endpoint, client: Place, wish: TrafficDistribution): number {
  const there: Place = { network: endpoint.network, locality: endpoint.locality, node: endpoint.nodeName ?? '' };
  const places = levels[wish];
  const firstMiss = places.findIndex((level) => level(there) !== level(client));
  return firstMiss === -1 ? 0 : places.length - firstMiss;
}

function part(index: number): (place: Place) => string {
  return ({ locality }) => locality.split('/')[index] ?? '';
}
