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
import type { ProxyShape } from '../../model/proxy-shape.ts';
import type { PushContext } from '../../model/push-context.ts';
import { wildcardAddress } from '../address.ts';
import type { InboundTarget } from '../inbound-target.ts';
import type { Init } from '../init.ts';
import { inboundClusterName, listenerName } from '../names.ts';
import { inboundRoutes } from '../routes/inbound.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { plaintextAlpn } from './inspection.ts';
import { tcpFilters } from './tcp-proxy.ts';
import { downstreamTls, httpAlpn } from './tls-context.ts';

type Match = Init<typeof FilterChainMatchSchema>;

/** @param place.redirected the chains stand in the virtual listener among those of other ports. */
export function inboundChains(
  target: InboundTarget,
  shape: ProxyShape,
  push: PushContext,
  place: { readonly redirected: boolean },
): FilterChain[] {
  const name = listenerName(wildcardAddress(shape.ipFamily), target.port);
  const chain = (match: Match, filters: Filter[], transportSocket?: TransportSocket): FilterChain =>
    create(FilterChainSchema, {
      name,
      filterChainMatch: place.redirected ? { destinationPort: target.port, ...match } : match,
      filters,
      transportSocket,
    });
  const speaksHttp = isHttp(target.protocol);
  if (target.tls !== undefined) {
    const filters = speaksHttp ? [httpFilter(name, target, shape, push)] : tcpFiltersOf(target, push);
    const match = place.redirected ? { transportProtocol: 'tls' } : {};
    return [chain(match, filters, downstreamTls(target.tls, speaksHttp ? httpAlpn : []))];
  }
  if (speaksHttp) {
    const match = place.redirected ? { transportProtocol: 'raw_buffer' } : {};
    return [chain(match, [httpFilter(name, target, shape, push)])];
  }
  // TLS of the application's own goes through as any other bytes do.
  const tcp = chain({}, tcpFiltersOf(target, push));
  if (target.protocol !== 'unsupported') return [tcp];
  const alpn = plaintextAlpn(shape.metadata.HTTP10 === '1');
  const recognised = { transportProtocol: 'raw_buffer', applicationProtocols: alpn };
  return [chain(recognised, [httpFilter(name, target, shape, push)]), tcp];
}

function httpFilter(name: string, target: InboundTarget, shape: ProxyShape, push: PushContext): Filter {
  return httpConnectionManager({
    direction: 'inbound',
    listener: name,
    routes: inboundRoutes(target),
    mesh: push.mesh,
    grpcWeb: target.protocol === 'GRPC-Web',
    http10: shape.metadata.HTTP10 === '1',
  });
}

function tcpFiltersOf(target: InboundTarget, push: PushContext): Filter[] {
  const tcp = target.connectionPool?.tcp;
  return tcpFilters({
    destinations: [{ cluster: inboundClusterName(target.port), weight: 0 }],
    mesh: push.mesh,
    protocol: target.protocol,
    idleTimeoutMs: tcp?.idleTimeoutMs,
    maxConnectionDurationMs: tcp?.maxConnectionDurationMs,
  });
}
