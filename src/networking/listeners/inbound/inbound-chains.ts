/** The filter chains of one inbound port (spec/discovery.md §8.4): the rows of the table for its mode and protocol. */
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
import { takesHttp10 } from '../http10.ts';
import { rawBuffer } from '../inspection.ts';
import { requestFilters, tcpFilters } from '../network-filters/index.ts';
import { downstreamTls, httpAlpn, workloadTls } from '../tls-context.ts';
import { type InboundRow, inboundRows, trafficOf } from './inbound-table.ts';

/** The chains of a port, and what must be known of a connection to choose among them. */
export interface InboundPort {
  readonly port: number;
  readonly chains: readonly FilterChain[];
  /** Whether it is TLS. */
  readonly tellsTls: boolean;
  /** Whether it speaks HTTP, where it is not TLS. */
  readonly tellsHttp: boolean;
}

/** @param place.redirected the chains stand in the virtual listener among those of other ports. */
export function inboundPort(
  target: InboundTarget,
  proxy: ProxyContext,
  place: { readonly redirected: boolean },
): InboundPort {
  const { shape } = proxy;
  const name = listenerName(target.bind, target.port);
  const context: ConnectionContext = { ...proxy, direction: 'inbound', listener: name, port: target.port };
  const origins = [...inboundOrigins(target, shape, proxy.push), ...peerOrigins(proxy.policies, target.port)];
  const filters = {
    requests: once(() => requestsOf(target, context)),
    bytes: once(() => bytesOf(target, context)),
  };
  const rows = rowsOf(target, takesHttp10(proxy));
  const chains = rows.map((row) =>
    withOrigins(
      create(FilterChainSchema, {
        name,
        filterChainMatch: matchOf(row, place.redirected ? target.port : undefined),
        ...endOf(row, filters, socketOf(row, proxy, target)),
      }),
      origins,
    ),
  );
  return { port: target.port, chains, ...needsOf(rows) };
}

/** With TLS of the Sidecar object there is nothing but that. */
function rowsOf({ tls, mode, protocol }: InboundTarget, http10: boolean): readonly InboundRow[] {
  const traffic = trafficOf(protocol);
  if (tls === undefined) return inboundRows(mode, traffic, http10);
  return [{ transport: 'tls', alpn: [], carries: traffic === 'http' ? 'requests' : 'bytes', ends: 'proxy' }];
}

/** @param destinationPort undefined where all connections are to one port. */
export function matchOf({ transport, alpn }: InboundRow, destinationPort: number | undefined) {
  return {
    ...(destinationPort !== undefined && { destinationPort }),
    transportProtocol: transport,
    applicationProtocols: [...alpn],
  };
}

/** Where its TLS ends here, with what; undefined when it asks of clients what nobody could check. */
export function socketOf(
  { ends, carries }: InboundRow,
  proxy: ProxyContext,
  { tls }: Pick<InboundTarget, 'tls'> = {},
): { transportSocket?: TransportSocket } | undefined {
  if (ends === 'mesh') return { transportSocket: workloadTls(carries, proxy.push.mesh) };
  if (ends === 'application' || tls === undefined) return {};
  const transportSocket = downstreamTls(tls, carries === 'requests' ? httpAlpn : [], proxy);
  return transportSocket && { transportSocket };
}

/** Envoy closes the connections of a chain without filters. */
export function endOf(
  { carries }: InboundRow,
  filters: Readonly<Record<InboundRow['carries'], () => Filter[]>>,
  socket: ReturnType<typeof socketOf>,
): { filters: Filter[]; transportSocket?: TransportSocket } {
  return socket === undefined ? { filters: [] } : { filters: filters[carries](), ...socket };
}

/** What tells the rows apart. Of a connection that nobody looks into Envoy says that it is not TLS. */
export function needsOf(rows: readonly InboundRow[]): Pick<InboundPort, 'tellsTls' | 'tellsHttp'> {
  return {
    tellsTls: rows.some(({ transport }) => transport === 'tls'),
    tellsHttp: rows.some(({ transport, alpn }) => transport === rawBuffer && alpn.length > 0),
  };
}

function requestsOf(target: InboundTarget, context: ConnectionContext): Filter[] {
  return requestFilters(context, {
    routes: inboundRoutes(target),
    grpcWeb: target.protocol === 'GRPC-Web',
    http10: takesHttp10(context),
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

/** Chains of a port differ in their matches; their filters are the same. */
export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
