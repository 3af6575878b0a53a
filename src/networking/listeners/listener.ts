import { create } from '@bufbuild/protobuf';
import type { AccessLog } from '../../gen/envoy/config/accesslog/v3/accesslog_pb.ts';
import { TrafficDirection } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { FilterChain, ListenerFilter } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { socketAddress } from '../messages/address.ts';
import type { Init } from '../messages/init.ts';
import { duration } from '../messages/protobuf-duration.ts';
import { unboundOption } from './unbound.ts';

export interface ListenerParts {
  readonly name: string;
  readonly direction: 'inbound' | 'outbound';
  /** IP address, or `unix:///path`. */
  readonly bind: string;
  readonly port: number;
  /** `false` if a virtual listener passes connections to this listener. */
  readonly bindToPort: boolean;
  readonly filterChains: FilterChain[];
  readonly defaultFilterChain?: FilterChain | undefined;
  readonly listenerFilters?: ListenerFilter[];
  readonly mesh: MeshConfig;
  /** Logs of connections that match no filter chain. */
  readonly accessLog: AccessLog[];
  readonly more?: Init<typeof ListenerSchema>;
}

/** Adds the IPv6 wildcard for a dual-stack proxy, because a listener on the IPv4 wildcard does not receive IPv6 connections. */
export function dualStackAddresses(
  { ipFamily }: Pick<ProxyShape, 'ipFamily'>,
  port: number,
): Init<typeof ListenerSchema> {
  return ipFamily === 'dual' ? { additionalAddresses: [{ address: socketAddress('::', port) }] } : {};
}

export function buildListener(listenerParts: ListenerParts): Listener {
  const inspects = (listenerParts.listenerFilters?.length ?? 0) > 0;
  return create(ListenerSchema, {
    name: listenerParts.name,
    address: socketAddress(listenerParts.bind, listenerParts.port),
    trafficDirection: listenerParts.direction === 'inbound' ? TrafficDirection.INBOUND : TrafficDirection.OUTBOUND,
    filterChains: listenerParts.filterChains,
    defaultFilterChain: listenerParts.defaultFilterChain,
    accessLog: listenerParts.accessLog,
    ...(!listenerParts.bindToPort && { bindToPort: false, socketOptions: [unboundOption] }),
    ...(inspects && {
      listenerFilters: listenerParts.listenerFilters!,
      listenerFiltersTimeout: duration(listenerParts.mesh.protocolDetectionTimeoutMs),
      // A client that sends nothing is handled as TCP instead of being disconnected.
      continueOnListenerFiltersTimeout: true,
    }),
    ...listenerParts.more,
  });
}
