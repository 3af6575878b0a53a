import type { FilterSchema } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import type { TunnelSettings } from '../../../model/kinds/destinations/traffic-policy.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { Init } from '../../messages/init.ts';
import type { HttpConnectionManagerOptions } from '../http-filters/contributor.ts';

export type ConnectionUse =
  | ({ readonly kind: 'tcp' } & TcpProxyOptions)
  | ({ readonly kind: 'http' } & HttpConnectionManagerOptions);

export type NetworkFilterInit = Init<typeof FilterSchema>;

export type NetworkFilterContributor = (context: ConnectionContext, use: ConnectionUse) => readonly NetworkFilterInit[];

export interface TcpProxyOptions {
  /** At least one cluster. */
  readonly destinations: readonly WeightedCluster[];
  readonly protocol?: ApplicationProtocol;
  readonly idleTimeoutMs?: number | undefined;
  readonly maxConnectionDurationMs?: number | undefined;
  readonly tunnel?: TunnelSettings | undefined;
  /** If set, Envoy resolves the SNI and connects to this port. */
  readonly dynamicPort?: number | undefined;
  readonly hashSourceIp?: boolean;
}

export interface WeightedCluster {
  readonly cluster: string;
  /** Ignored for a single cluster. */
  readonly weight: number;
}
