/** The two listeners that redirection rules lead to (spec/discovery.md §8.4). */
import { create } from '@bufbuild/protobuf';
import {
  type FilterChain,
  FilterChainSchema,
  type ListenerFilter,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyShape } from '../../model/proxy-shape.ts';
import { wildcardAddress } from '../address.ts';
import { type ConnectionContext, clientContext, type ProxyContext } from '../connection-context.ts';
import { blackHoleCluster, virtualInboundListener, virtualOutboundListener } from '../names.ts';
import { sidecarOrigin, withOrigins } from '../origin.ts';
import { fallbackCluster } from '../outbound-fallback.ts';
import { listenerAccessLogs } from './access-log.ts';
import type { InboundPort } from './inbound-chains.ts';
import { passthroughPorts } from './inbound-passthrough.ts';
import { httpInspector, originalDestination, originalSource, portsWhere, tlsInspector } from './inspection.ts';
import { atBothFamilies, makeListener } from './listener.ts';
import { tcpFilters } from './network-filters/index.ts';

/** Takes all redirected outbound connections and hands each to the listener of its destination, if there is one. */
export function virtualOutbound(proxy: ProxyContext): Listener {
  const { shape, push } = proxy;
  const { mesh } = push;
  const scope = push.sidecarScopeFor(shape);
  const context: ConnectionContext = {
    ...clientContext(proxy),
    direction: 'outbound',
    listener: virtualOutboundListener,
    port: mesh.proxyListenPort,
  };
  const cluster = fallbackCluster(scope.outboundTrafficPolicy, scope);
  const catchAll = create(FilterChainSchema, {
    name: 'virtualOutbound-catchall-tcp',
    filters: tcpFilters(context, { destinations: [{ cluster, weight: 0 }] }),
  });
  return makeListener({
    name: virtualOutboundListener,
    direction: 'outbound',
    bind: wildcardAddress(shape.ipFamily),
    port: mesh.proxyListenPort,
    bindToPort: true,
    filterChains: [
      blackHoleChain('virtualOutbound-blackhole', context),
      withOrigins(catchAll, sidecarOrigin(scope, 'outboundTrafficPolicy')),
    ],
    mesh,
    accessLog: listenerAccessLogs(context),
    more: { useOriginalDst: true, ...transparency(shape), ...atBothFamilies(shape, mesh.proxyListenPort) },
  });
}

/**
 * Takes all redirected inbound connections; the chain of the destination port handles them.
 *
 * @param described the ports of services and ingress listeners, ascending.
 */
export function virtualInbound(proxy: ProxyContext, described: readonly InboundPort[]): Listener {
  const { shape, push } = proxy;
  const { mesh } = push;
  const port = mesh.proxyInboundListenPort;
  const [others, ...named] = passthroughPorts(proxy, new Set(described.map((one) => one.port)));
  return makeListener({
    name: virtualInboundListener,
    direction: 'inbound',
    bind: wildcardAddress(shape.ipFamily),
    port,
    bindToPort: true,
    filterChains: [
      blackHoleChain('virtualInbound-blackhole', {
        ...proxy,
        direction: 'inbound',
        listener: virtualInboundListener,
        port,
      }),
      ...[others!, ...named, ...described].flatMap(({ chains }) => chains),
    ],
    listenerFilters: [
      originalDestination(),
      ...(shape.interceptionMode === 'TPROXY' ? [originalSource()] : []),
      ...inspectors([...named, ...described], others!),
    ],
    mesh,
    accessLog: listenerAccessLogs({ ...proxy, direction: 'inbound', listener: virtualInboundListener, port }),
    more: { ...transparency(shape), ...atBothFamilies(shape, port) },
  });
}

/** Ports are looked into where their chains differ by what is found, and nowhere else. */
function inspectors(ports: readonly InboundPort[], others: InboundPort): ListenerFilter[] {
  const tls = portsWhere(
    ports.map(({ port, tellsTls }) => ({ port, holds: tellsTls })),
    others.tellsTls,
  );
  const http = portsWhere(
    ports.map(({ port, tellsHttp }) => ({ port, holds: tellsHttp })),
    others.tellsHttp,
  );
  return [...(tls ? [tlsInspector(tls)] : []), ...(http ? [httpInspector(http)] : [])];
}

/** Connections to the listener's own port would be forwarded to it for ever. */
function blackHoleChain(name: string, context: ConnectionContext): FilterChain {
  return create(FilterChainSchema, {
    name,
    filterChainMatch: { destinationPort: context.port },
    filters: tcpFilters(context, { destinations: [{ cluster: blackHoleCluster, weight: 0 }] }),
  });
}

function transparency(shape: ProxyShape): { transparent?: boolean } {
  return shape.interceptionMode === 'TPROXY' ? { transparent: true } : {};
}
