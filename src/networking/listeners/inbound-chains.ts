/**
 * The filter chains of one inbound port (spec/discovery.md §8.4). Plaintext, and TLS that a Sidecar object ends here;
 * the rows of the table for workload mutual TLS come with PeerAuthentication.
 */
import { create } from '@bufbuild/protobuf';
import type { TransportSocket } from '../../gen/envoy/config/core/v3/base_pb.ts';
import {
  type Filter,
  type FilterChain,
  type FilterChainMatchSchema,
  FilterChainSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { isHttp } from '../../model/protocol.ts';
import { wildcardAddress } from '../address.ts';
import type { ConnectionContext, ProxyContext } from '../connection-context.ts';
import { type InboundTarget, inboundOrigins } from '../inbound-target.ts';
import type { Init } from '../init.ts';
import { inboundClusterName, listenerName } from '../names.ts';
import { withOrigins } from '../origin.ts';
import { inboundRoutes } from '../routes/inbound.ts';
import { plaintextAlpn, rawBuffer } from './inspection.ts';
import { requestFilters, tcpFilters } from './network-filters/index.ts';
import { downstreamTls, httpAlpn } from './tls-context.ts';

type Match = Init<typeof FilterChainMatchSchema>;

/** @param place.redirected the chains stand in the virtual listener among those of other ports. */
export function inboundChains(
  target: InboundTarget,
  proxy: ProxyContext,
  place: { readonly redirected: boolean },
): FilterChain[] {
  const { shape } = proxy;
  const name = listenerName(wildcardAddress(shape.ipFamily), target.port);
  const context: ConnectionContext = { ...proxy, direction: 'inbound', listener: name, port: target.port };
  const origins = inboundOrigins(target, shape, proxy.push);
  const chain = (match: Match, filters: Filter[], transportSocket?: TransportSocket): FilterChain => {
    const filterChainMatch = place.redirected ? { destinationPort: target.port, ...match } : match;
    return withOrigins(create(FilterChainSchema, { name, filterChainMatch, filters, transportSocket }), origins);
  };
  const speaksHttp = isHttp(target.protocol);
  if (target.tls !== undefined) {
    const filters = speaksHttp ? httpFiltersOf(target, context) : tcpFiltersOf(target, context);
    const match = place.redirected ? { transportProtocol: 'tls' } : {};
    return [chain(match, filters, downstreamTls(target.tls, speaksHttp ? httpAlpn : []))];
  }
  if (speaksHttp) {
    const match = place.redirected ? { transportProtocol: rawBuffer } : {};
    return [chain(match, httpFiltersOf(target, context))];
  }
  // TLS of the application's own goes through as any other bytes do.
  const bytes = tcpFiltersOf(target, context);
  if (target.protocol !== 'unsupported') return [chain({}, bytes)];
  const applicationProtocols = plaintextAlpn(shape.metadata.HTTP10 === '1');
  const requests = httpFiltersOf(target, context);
  // A listener of the port's own does not look for TLS: everything is plain there.
  if (!place.redirected) return [chain({ applicationProtocols }, requests), chain({}, bytes)];
  return [
    chain({ transportProtocol: rawBuffer, applicationProtocols }, requests),
    chain({ transportProtocol: rawBuffer }, bytes),
    chain({}, bytes),
  ];
}

function httpFiltersOf(target: InboundTarget, context: ConnectionContext): Filter[] {
  return requestFilters(context, {
    routes: inboundRoutes(target),
    grpcWeb: target.protocol === 'GRPC-Web',
    http10: context.shape.metadata.HTTP10 === '1',
  });
}

function tcpFiltersOf(target: InboundTarget, context: ConnectionContext): Filter[] {
  const tcp = target.connectionPool?.tcp;
  return tcpFilters(context, {
    destinations: [{ cluster: inboundClusterName(target.port), weight: 0 }],
    protocol: target.protocol,
    idleTimeoutMs: tcp?.idleTimeoutMs,
    maxConnectionDurationMs: tcp?.maxConnectionDurationMs,
  });
}
