/** A call of a gRPC client without a proxy, or to such a server, with its explanation. */
import type { Cluster } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { Limitation, WithLimitations } from '../../grpc/limitation.ts';
import type { Explanation } from '../explanation.ts';

export interface GrpcQuestion {
  /** Whether the node makes the call or receives it. */
  readonly side: 'client' | 'server';
  /** Client: the text after `xds:///`. Server: `IP:PORT`. */
  readonly target: string;
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Client: an override, absent for the target. */
  readonly authority?: string;
  /** Metadata of the call by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Server: IP of the client, absent if unknown. */
  readonly source?: string;
  /** Server: SPIFFE ID in the client's certificate, absent if the client sends plaintext. */
  readonly principal?: string;
}

/** The resources of a node, each by the name that gRPC requests. */
export interface GrpcConfiguration {
  readonly listener: (name: string) => WithLimitations<Listener | undefined>;
  readonly routes: (name: string) => WithLimitations<RouteConfiguration | undefined>;
  readonly cluster: (name: string) => WithLimitations<Cluster | undefined>;
  readonly endpoints: (name: string) => ClusterLoadAssignment | undefined;
}

export interface GrpcExplanation extends Explanation {
  /** Other settings of the call, one sentence each without a full stop: timeout, retries, load balancing, TLS. */
  readonly settings: readonly string[];
  /** Configured features that gRPC does not support. */
  readonly limitations: readonly Limitation[];
}
