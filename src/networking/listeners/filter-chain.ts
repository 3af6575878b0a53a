import { create } from '@bufbuild/protobuf';
import type { CidrRange } from '../../gen/envoy/config/core/v3/address_pb.ts';
import {
  type Filter,
  type FilterChain,
  type FilterChainMatchSchema,
  FilterChainSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { ApplicationProtocol } from '../../model/fields/protocol.ts';
import type { Destination } from '../../model/kinds/virtual-service/virtual-service.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';
import { type Origin, withOrigins } from '../inputs/message-origin.ts';
import { cidrRange } from '../messages/address.ts';
import type { Init } from '../messages/init.ts';
import { parseDuration } from '../messages/metadata-duration.ts';
import { resolveDestination } from '../traffic/destination.ts';
import type { ProxyReach } from '../traffic/reach.ts';
import { passthroughFilterChain } from '../traffic/resource-names.ts';
import { effectivePolicy } from '../traffic/traffic-policy.ts';
import type { WeightedCluster } from './network-filters/contributor.ts';
import { tcpFilters } from './network-filters/index.ts';

export interface ChainMatch {
  readonly serverNames?: readonly string[];
  readonly destinationSubnets?: readonly string[];
  readonly sourceSubnet?: string | undefined;
}

/** Envoy treats an absent match like an empty one, but its config dumps differ. */
export function chainMatch(match: ChainMatch): Init<typeof FilterChainMatchSchema> | undefined {
  const prefixRanges = cidrRanges(match.destinationSubnets ?? []);
  const sourcePrefixRanges = cidrRanges(match.sourceSubnet === undefined ? [] : [match.sourceSubnet]);
  const serverNames = [...(match.serverNames ?? [])].sort();
  if (prefixRanges.length + sourcePrefixRanges.length + serverNames.length === 0) return undefined;
  return { prefixRanges, sourcePrefixRanges, serverNames };
}

function cidrRanges(texts: readonly string[]): CidrRange[] {
  return texts.map(cidrRange).filter((range) => range !== undefined);
}

export interface TcpChainRoute {
  readonly destinations: readonly WeightedCluster[];
  readonly firstDestination: Destination;
  readonly port: number;
  readonly protocol: ApplicationProtocol;
}

/** A TCP proxy to the destinations, with timeouts and tunnel of the first destination's traffic policy. */
export function routeFilters(route: TcpChainRoute, context: ConnectionContext, reach: ProxyReach): Filter[] {
  const { service, serviceWithRule, port } = resolveDestination(route.firstDestination, route.port, reach);
  const rule = serviceWithRule && reach.destinationRuleFor(serviceWithRule);
  const policy = effectivePolicy(rule?.config.spec, route.firstDestination.subset ?? '', port);
  const tcp = policy.connectionPool?.tcp;
  return tcpFilters(context, {
    destinations: route.destinations,
    protocol: route.protocol,
    idleTimeoutMs: tcp?.idleTimeoutMs ?? parseDuration(context.shape.metadata.IDLE_TIMEOUT),
    maxConnectionDurationMs: tcp?.maxConnectionDurationMs,
    tunnel: policy.tunnel,
    dynamicPort: service?.resolution === 'DynamicDNS' ? port : undefined,
    hashSourceIp: policy.loadBalancer?.consistentHash?.useSourceIp ?? false,
  });
}

export function passthroughChain(cluster: string, context: ConnectionContext, origins: readonly Origin[]): FilterChain {
  const filters = tcpFilters(context, { destinations: [{ cluster, weight: 0 }] });
  return withOrigins(create(FilterChainSchema, { name: passthroughFilterChain, filters }), origins);
}
