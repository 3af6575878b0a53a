/** Resource types that a sidecar subscribes to, and their dependencies. */
export const kinds = ['CDS', 'EDS', 'LDS', 'RDS'] as const;
export type Kind = (typeof kinds)[number];

export type XdsProtocol = 'sotw' | 'delta';

const prefix = 'type.googleapis.com/';

export const typeUrlOf: Readonly<Record<Kind, string>> = {
  CDS: `${prefix}envoy.config.cluster.v3.Cluster`,
  EDS: `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`,
  LDS: `${prefix}envoy.config.listener.v3.Listener`,
  RDS: `${prefix}envoy.config.route.v3.RouteConfiguration`,
};

const kindByTypeUrl = new Map(kinds.map((kind) => [typeUrlOf[kind], kind]));

/** @returns `undefined` for a type that sidecars do not request */
export const kindOf = (typeUrl: string): Kind | undefined => kindByTypeUrl.get(typeUrl);

/** In state of the world, a response of these types contains all resources; a response of the others contains changed or requested ones. */
export const isWildcard = (kind: Kind): kind is 'CDS' | 'LDS' => kind === 'CDS' || kind === 'LDS';

/** Clusters refer to requested endpoints, listeners to requested routes. */
export const followedBy: Readonly<Record<'CDS' | 'LDS', 'EDS' | 'RDS'>> = { CDS: 'EDS', LDS: 'RDS' };

export const methodPath: Readonly<Record<XdsProtocol, string>> = {
  sotw: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
};
