import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';

export interface ProxyConfiguration {
  readonly listeners: readonly Listener[];
  readonly routes: ReadonlyMap<string, RouteConfiguration>;
  readonly clusters: ReadonlyMap<string, Cluster>;
  /** Assignments by EDS service name. */
  readonly endpoints: ReadonlyMap<string, ClusterLoadAssignment>;
  /** Set if keys of `jwksUri` were not fetched. Absent for a running proxy. */
  readonly lacksFetchedKeys?: boolean;
  readonly explainEndpoints?: (cluster: string) => readonly string[];
}
