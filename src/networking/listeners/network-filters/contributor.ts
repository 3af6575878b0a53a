/** One row of the table of network filters. */

import type { FilterSchema } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import type { TunnelSettings } from '../../../model/kinds/destinations/traffic-policy.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { Init } from '../../messages/init.ts';
import type { HttpConnectionManagerOptions } from '../http-filters/contributor.ts';

/** What becomes of the connection: its bytes are carried on, or read as HTTP. */
export type ConnectionUse =
  | ({ readonly kind: 'tcp' } & TcpProxyOptions)
  | ({ readonly kind: 'http' } & HttpConnectionManagerOptions);

/** A filter with its configuration packed (a TypedExtension is one), or with a name to ask for it. */
export type NetworkFilterInit = Init<typeof FilterSchema>;

/** The filters of one kind that a connection goes through, in their order; none where they have no use. */
export type NetworkFilterContributor = (context: ConnectionContext, use: ConnectionUse) => readonly NetworkFilterInit[];

export interface TcpProxyOptions {
  /** Where the connection may go: at least one cluster. */
  readonly destinations: readonly WeightedCluster[];
  readonly protocol?: ApplicationProtocol;
  readonly idleTimeoutMs?: number | undefined;
  readonly maxConnectionDurationMs?: number | undefined;
  readonly tunnel?: TunnelSettings | undefined;
  /** The destination is the host in the connection's SNI, at this port. */
  readonly dynamicPort?: number | undefined;
  /** Sources that stick to an endpoint. */
  readonly hashSourceIp?: boolean;
}

export interface WeightedCluster {
  readonly cluster: string;
  /** Ignored when it is the only one. */
  readonly weight: number;
}
