/** The configuration of a proxy, from files or from a running one. */
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';

export interface ProxyConfiguration {
  readonly listeners: readonly Listener[];
  readonly routes: ReadonlyMap<string, RouteConfiguration>;
  readonly clusters: ReadonlyMap<string, Cluster>;
  /** Assignments by the name that the cluster requests. */
  readonly endpoints: ReadonlyMap<string, ClusterLoadAssignment>;
  /** Keys of a `jwksUri` were not fetched. Absent for the configuration of a running proxy. */
  readonly lacksFetchedKeys?: boolean;
  /** Why endpoints of its service are not in a cluster, one sentence each. Absent if the mesh's objects are unknown. */
  readonly explainEndpoints?: (cluster: string) => readonly string[];
}
