/** A call of a gRPC client without a proxy, or to such a server, and what answers it. */
import type { Cluster } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { Limitation, Limited } from '../../grpc/limitation.ts';
import type { Explanation } from '../explanation.ts';

export interface GrpcQuestion {
  /** Whether the node makes the call or receives it. */
  readonly side: 'client' | 'server';
  /** Of a client: the text after `xds:///`. Of a server: `IP:PORT`. */
  readonly target: string;
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Of a client that overrides it; absent: the target. */
  readonly authority?: string;
  /** Metadata of the call by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of a server: IP of the client; absent: unknown. */
  readonly source?: string;
  /** Of a server: SPIFFE ID in the client's certificate; absent: the client sends plaintext. */
  readonly principal?: string;
}

/** The resources of a node, each by the name that gRPC requests. */
export interface GrpcConfiguration {
  readonly listener: (name: string) => Limited<Listener | undefined>;
  readonly routes: (name: string) => Limited<RouteConfiguration | undefined>;
  readonly cluster: (name: string) => Limited<Cluster | undefined>;
  readonly endpoints: (name: string) => ClusterLoadAssignment | undefined;
}

export interface GrpcExplanation extends Explanation {
  /** What applies to the call, one sentence each without a full stop: timeout, retries, load balancing, TLS. */
  readonly settings: readonly string[];
  /** What objects configure and gRPC does not do. */
  readonly limitations: readonly Limitation[];
}
