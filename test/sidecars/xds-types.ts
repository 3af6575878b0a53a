/** What a sidecar subscribes to, and what follows from what. */
export const kinds = ['CDS', 'EDS', 'LDS', 'RDS'] as const;
export type Kind = (typeof kinds)[number];

export type Protocol = 'sotw' | 'delta';

const prefix = 'type.googleapis.com/';

export const typeUrlOf: Readonly<Record<Kind, string>> = {
  CDS: `${prefix}envoy.config.cluster.v3.Cluster`,
  EDS: `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`,
  LDS: `${prefix}envoy.config.listener.v3.Listener`,
  RDS: `${prefix}envoy.config.route.v3.RouteConfiguration`,
};

const byTypeUrl = new Map(kinds.map((kind) => [typeUrlOf[kind], kind]));

/** @returns undefined for a type that no sidecar of ours asks for */
export const kindOf = (typeUrl: string): Kind | undefined => byTypeUrl.get(typeUrl);

/** A response of these in state of the world holds all there is; one of the others what changed, or all that was asked for. */
export const isWildcard = (kind: Kind): kind is 'CDS' | 'LDS' => kind === 'CDS' || kind === 'LDS';

/** Clusters name the endpoints that are asked for, listeners the routes. */
export const followedBy: Readonly<Record<'CDS' | 'LDS', 'EDS' | 'RDS'>> = { CDS: 'EDS', LDS: 'RDS' };

export const methodPath: Readonly<Record<Protocol, string>> = {
  sotw: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
};
