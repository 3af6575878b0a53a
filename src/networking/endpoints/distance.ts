/** Orders endpoints by a service's `trafficDistribution`. */
import type { Endpoint, TrafficDistribution } from '../../model/services/service.ts';

export interface ClientLocation {
  readonly network: string;
  /** `region/zone/subzone`. */
  readonly locality: string;
  /** Kubernetes node name, empty if unknown. */
  readonly node: string;
}

/** Topology levels of each setting, most significant first. */
const levels: Readonly<Record<TrafficDistribution, readonly ((place: ClientLocation) => string)[]>> = {
  PreferSameZone: [({ network }) => network, localityPart(0), localityPart(1)],
  PreferSameNode: [({ network }) => network, localityPart(0), localityPart(1), localityPart(2), ({ node }) => node],
};

/** Returns 0 for the nearest endpoints. */
export function topologyDistance(
  endpoint: Endpoint,
  client: ClientLocation,
  distribution: TrafficDistribution,
): number {
  const location: ClientLocation = {
    network: endpoint.network,
    locality: endpoint.locality,
    node: endpoint.nodeName ?? '',
  };
  const localityLevels = levels[distribution];
  const firstMismatchIndex = localityLevels.findIndex((level) => level(location) !== level(client));
  return firstMismatchIndex === -1 ? 0 : localityLevels.length - firstMismatchIndex;
}

function localityPart(index: number): (location: ClientLocation) => string {
  return ({ locality }) => locality.split('/')[index] ?? '';
}
