import { create } from '@bufbuild/protobuf';
import type { TransportSocket } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
} from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { ConnectionContext, ProxyContext } from '../../inputs/connection-context.ts';
import { withOrigins } from '../../inputs/message-origin.ts';
import { inboundRoutes } from '../../routes/translate/inbound.ts';
import { type InboundTarget, inboundOrigins } from '../../traffic/inbound-target.ts';
import { peerOrigins } from '../../traffic/peer-mode.ts';
import { inboundClusterName, listenerName } from '../../traffic/resource-names.ts';
import { acceptsHttp10 } from '../http10.ts';
import { rawBuffer } from '../inspection.ts';
import { requestFilters, tcpFilters } from '../network-filters/index.ts';
import { downstreamTls, httpAlpn, workloadTls } from '../tls-context.ts';
import { type InboundRow, inboundRows, trafficOf } from './inbound-table.ts';

export interface InboundPort {
  readonly port: number;
  readonly chains: readonly FilterChain[];
  readonly detectsTls: boolean;
  readonly detectsHttp: boolean;
}

/** @param options.redirected whether the chains are part of the virtual listener, which has chains for several ports */
export function inboundPort(
  target: InboundTarget,
  proxy: ProxyContext,
  options: { readonly redirected: boolean },
): InboundPort {
  const { shape } = proxy;
  const name = listenerName(target.bind, target.port);
  const context: ConnectionContext = { ...proxy, direction: 'inbound', listener: name, port: target.port };
  const origins = [...inboundOrigins(target, shape, proxy.push), ...peerOrigins(proxy.policies, target.port)];
  const filters = {
    requests: memoizeLazily(() => requestsOf(target, context)),
    bytes: memoizeLazily(() => bytesOf(target, context)),
  };
  const rows = rowsOf(target, acceptsHttp10(proxy));
  const chains = rows.map((row) =>
    withOrigins(
      create(FilterChainSchema, {
        name,
        filterChainMatch: chainMatchOf(row, options.redirected ? target.port : undefined),
        ...filtersOfRow(row, filters, terminatedTlsSocket(row, proxy, target)),
      }),
      origins,
    ),
  );
  return { port: target.port, chains, ...detectionOf(rows) };
}

/** TLS settings of the Sidecar object have priority over the table. */
function rowsOf({ tls, mode, protocol }: InboundTarget, http10: boolean): readonly InboundRow[] {
  const traffic = trafficOf(protocol);
  if (tls === undefined) return inboundRows(mode, traffic, http10);
  return [{ transport: 'tls', alpn: [], content: traffic === 'http' ? 'requests' : 'bytes', terminatedTls: 'proxy' }];
}

export function chainMatchOf({ transport, alpn }: InboundRow, destinationPort: number | undefined) {
  return {
    ...(destinationPort !== undefined && { destinationPort }),
    transportProtocol: transport,
    applicationProtocols: [...alpn],
  };
}

/** Returns `undefined` if the chain does not terminate TLS, or if client certificates cannot be verified as configured. */
export function terminatedTlsSocket(
  { terminatedTls, content }: InboundRow,
  proxy: ProxyContext,
  { tls }: Pick<InboundTarget, 'tls'> = {},
): { transportSocket?: TransportSocket } | undefined {
  if (terminatedTls === 'mesh') return { transportSocket: workloadTls(content, proxy.push.mesh) };
  if (terminatedTls === 'application' || tls === undefined) return {};
  const transportSocket = downstreamTls(tls, content === 'requests' ? httpAlpn : [], proxy);
  return transportSocket && { transportSocket };
}

export function filtersOfRow(
  { content }: InboundRow,
  filters: Readonly<Record<InboundRow['content'], () => Filter[]>>,
  socket: ReturnType<typeof terminatedTlsSocket>,
): { filters: Filter[]; transportSocket?: TransportSocket } {
  return socket === undefined ? { filters: [] } : { filters: filters[content](), ...socket };
}

/** Without a TLS inspector, Envoy treats all connections as plaintext. */
export function detectionOf(rows: readonly InboundRow[]): Pick<InboundPort, 'detectsTls' | 'detectsHttp'> {
  return {
    detectsTls: rows.some(({ transport }) => transport === 'tls'),
    detectsHttp: rows.some(({ transport, alpn }) => transport === rawBuffer && alpn.length > 0),
  };
}

function requestsOf(target: InboundTarget, context: ConnectionContext): Filter[] {
  return requestFilters(context, {
    routes: inboundRoutes(target),
    grpcWeb: target.protocol === 'GRPC-Web',
    http10: acceptsHttp10(context),
  });
}

function bytesOf(target: InboundTarget, context: ConnectionContext): Filter[] {
  const tcp = target.connectionPool?.tcp;
  return tcpFilters(context, {
    destinations: [{ cluster: inboundClusterName(target.port), weight: 0 }],
    protocol: target.protocol,
    idleTimeoutMs: tcp?.idleTimeoutMs,
    maxConnectionDurationMs: tcp?.maxConnectionDurationMs,
  });
}

/** Computes the value once: the chains of a port have different matches, but share the filters. */
export function memoizeLazily<T>(compute: () => T): () => T {
  let cachedResult: T | undefined;
  return () => {
    cachedResult ??= compute();
    return cachedResult;
  };
}
