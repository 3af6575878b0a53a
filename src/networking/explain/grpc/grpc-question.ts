import type { Cluster } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ClusterLoadAssignment } from '../../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { Limitation, WithLimitations } from '../../grpc/limitation.ts';
import type { Explanation } from '../explanation.ts';

export interface GrpcQuestion {
  readonly side: 'client' | 'server';
  /** For a client, the text after `xds:///`; for a server, `IP:PORT`. */
  readonly target: string;
  /** `/package.Service/Method`. */
  readonly path: string;
  /** For a client, the authority if it differs from the target. */
  readonly authority?: string;
  /** Metadata by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** For a server, the IP address of the client; absent if unknown. */
  readonly source?: string;
  /** For a server, the SPIFFE ID of the client certificate; absent for plaintext. */
  readonly principal?: string;
}

export interface GrpcConfiguration {
  readonly listener: (name: string) => WithLimitations<Listener | undefined>;
  readonly routes: (name: string) => WithLimitations<RouteConfiguration | undefined>;
  readonly cluster: (name: string) => WithLimitations<Cluster | undefined>;
  readonly endpoints: (name: string) => ClusterLoadAssignment | undefined;
}

export interface GrpcExplanation extends Explanation {
  /** Sentences about timeout, retries, load balancing and TLS, without full stops. */
  readonly settings: readonly string[];
  readonly limitations: readonly Limitation[];
}
