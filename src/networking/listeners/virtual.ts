/** The two listeners that redirection rules lead to (spec/discovery.md §8.4). */
import { create } from '@bufbuild/protobuf';
import { type FilterChain, FilterChainSchema } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyShape } from '../../model/proxy-shape.ts';
import { wildcardAddress } from '../address.ts';
import { type ConnectionContext, clientContext, type ProxyContext } from '../connection-context.ts';
import {
  blackHoleCluster,
  inboundPassthroughCluster,
  virtualInboundListener,
  virtualOutboundListener,
} from '../names.ts';
import { sidecarOrigin, withOrigins } from '../origin.ts';
import { fallbackCluster } from '../outbound-fallback.ts';
import { passthroughRoutes } from '../routes/inbound.ts';
import { httpInspector, originalDestination, plaintextAlpn, rawBuffer, tlsInspector } from './inspection.ts';
import { makeListener } from './listener.ts';
import { requestFilters, tcpFilters } from './network-filters/index.ts';

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
    more: { useOriginalDst: true, ...transparency(shape) },
  });
}

export interface InboundPort {
  readonly port: number;
  readonly chains: readonly FilterChain[];
  /** What must be looked at to choose among its chains. */
  readonly sniffed: boolean;
  /** The client may wait for the server to speak first. */
  readonly silent: boolean;
}

/** Takes all redirected inbound connections; the chain of the destination port handles them. */
export function virtualInbound(proxy: ProxyContext, ports: readonly InboundPort[]): Listener {
  const { shape, push } = proxy;
  const { mesh } = push;
  const port = mesh.proxyInboundListenPort;
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
      ...passthroughChains(proxy),
      ...ports.flatMap(({ chains }) => chains),
    ],
    listenerFilters: [
      originalDestination(),
      tlsInspector(ports.filter(({ silent }) => silent).map(({ port }) => port)),
      httpInspector(ports.filter(({ sniffed }) => !sniffed).map(({ port }) => port)),
    ],
    mesh,
    more: transparency(shape),
  });
}

/** Connections to the listener's own port would be forwarded to it for ever. */
function blackHoleChain(name: string, context: ConnectionContext): FilterChain {
  return create(FilterChainSchema, {
    name,
    filterChainMatch: { destinationPort: context.port },
    filters: tcpFilters(context, { destinations: [{ cluster: blackHoleCluster, weight: 0 }] }),
  });
}

/** Ports that no service describes. */
function passthroughChains(proxy: ProxyContext): FilterChain[] {
  const http10 = proxy.shape.metadata.HTTP10 === '1';
  const name = 'virtualInbound-catchall-http';
  const requests: ConnectionContext = { ...proxy, direction: 'inbound', listener: name, port: 0 };
  const bytes: ConnectionContext = { ...requests, listener: virtualInboundListener };
  const filters = tcpFilters(bytes, { destinations: [{ cluster: inboundPassthroughCluster, weight: 0 }] });
  return [
    create(FilterChainSchema, {
      name,
      filterChainMatch: { transportProtocol: rawBuffer, applicationProtocols: plaintextAlpn(http10) },
      filters: requestFilters(requests, { routes: passthroughRoutes(), http10 }),
    }),
    create(FilterChainSchema, {
      name: virtualInboundListener,
      filterChainMatch: { transportProtocol: rawBuffer },
      filters,
    }),
    create(FilterChainSchema, { name: virtualInboundListener, filters }),
  ];
}

function transparency(shape: ProxyShape): { transparent?: boolean } {
  return shape.interceptionMode === 'TPROXY' ? { transparent: true } : {};
}
