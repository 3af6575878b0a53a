import { create } from '@bufbuild/protobuf';
import {
  type FilterChain,
  FilterChainSchema,
  type ListenerFilter,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { serverFirstPorts } from '../../model/fields/protocol.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import { type ConnectionContext, clientContext, type ProxyContext } from '../inputs/connection-context.ts';
import { sidecarOrigin, withOrigins } from '../inputs/message-origin.ts';
import { wildcardAddress } from '../messages/address.ts';
import { duration } from '../messages/protobuf-duration.ts';
import { fallbackHost } from '../routes/translate/fallback.ts';
import { routeConfiguration } from '../routes/translate/route-configuration.ts';
import { fallbackCluster } from '../traffic/outbound-fallback.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { blackHoleCluster, virtualInboundListener, virtualOutboundListener } from '../traffic/resource-names.ts';
import { acceptsHttp10 } from './http10.ts';
import type { InboundPort } from './inbound/inbound-chains.ts';
import { passthroughPorts } from './inbound/inbound-passthrough.ts';
import {
  httpInspector,
  matchingPortChoice,
  originalDestination,
  originalSource,
  plaintextAlpn,
  rawBuffer,
  tlsInspector,
} from './inspection.ts';
import { buildListener, dualStackAddresses } from './listener.ts';
import { requestFilters, tcpFilters } from './network-filters/index.ts';
import { listenerAccessLogs } from './observability/access-log.ts';
import { buildOutboundPlan } from './outbound/outbound-services.ts';

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
  const cluster = fallbackCluster(scope.outboundTrafficPolicy, proxyReachOf(shape, push));
  const origins = sidecarOrigin(scope, 'outboundTrafficPolicy');
  const catchAll = withOrigins(
    create(FilterChainSchema, {
      name: 'virtualOutbound-catchall-tcp',
      filters: tcpFilters(context, { destinations: [{ cluster, weight: 0 }] }),
    }),
    origins,
  );
  const blackHole = blackHoleChain('virtualOutbound-blackhole', context);
  const resolvesHosts = scope.outboundTrafficPolicy.mode === 'ALLOW_ANY_DYNAMIC_DNS';
  return buildListener({
    name: virtualOutboundListener,
    direction: 'outbound',
    bind: wildcardAddress(shape.ipFamily),
    port: mesh.proxyListenPort,
    bindToPort: true,
    ...(resolvesHosts
      ? {
          filterChains: [blackHole, withOrigins(unknownHostsChain(context, scope), origins)],
          // Must be the default chain: Envoy never selects a chain without conditions if another chain matches
          // plaintext.
          defaultFilterChain: catchAll,
          // The original destination is restored first, because the HTTP inspector's predicate compares its port.
          // `use_original_dst` restores it too late.
          listenerFilters: [originalDestination(), httpInspector({ except: describedPorts(proxy) })],
        }
      : { filterChains: [blackHole, catchAll] }),
    mesh,
    accessLog: listenerAccessLogs(context),
    more: {
      useOriginalDst: true,
      ...transparencyFields(shape),
      ...dualStackAddresses(shape, mesh.proxyListenPort),
      ...(resolvesHosts && {
        listenerFiltersTimeout: duration(mesh.protocolDetectionTimeoutMs || defaultInspectionTimeoutMs),
      }),
    },
  });
}

const defaultInspectionTimeoutMs = 5000;

/** Chain for plaintext HTTP to ports without a service, for which Envoy resolves the Host header of each request (outbound-fallback.ts). */
function unknownHostsChain(context: ConnectionContext, scope: SidecarScope): FilterChain {
  const name = 'virtualOutbound-catchall-http';
  const http10 = acceptsHttp10(context);
  const host = fallbackHost(scope, proxyReachOf(context.shape, context.push));
  return create(FilterChainSchema, {
    name,
    filterChainMatch: { transportProtocol: rawBuffer, applicationProtocols: plaintextAlpn(http10) },
    filters: requestFilters(context, { routes: routeConfiguration(name, [host]), http10 }),
  });
}

/**
 * Ports that the HTTP inspector skips: those of all other listeners, even on a VIP, and those of server-first protocols. The inspector runs before a
 * connection is passed to another listener.
 */
function describedPorts({ shape, push }: ProxyContext): number[] {
  const ports = buildOutboundPlan(shape, push).listeners.map(({ port }) => port);
  return [...new Set([...ports.filter((port) => port > 0), ...serverFirstPorts])].sort((a, b) => a - b);
}

export function virtualInbound(proxy: ProxyContext, inboundPorts: readonly InboundPort[]): Listener {
  const { shape, push } = proxy;
  const { mesh } = push;
  const port = mesh.proxyInboundListenPort;
  const [otherPorts, ...describedPortChains] = passthroughPorts(
    proxy,
    new Set(inboundPorts.map((describedPort) => describedPort.port)),
  );
  return buildListener({
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
      ...[otherPorts!, ...describedPortChains, ...inboundPorts].flatMap(({ chains }) => chains),
    ],
    listenerFilters: [
      originalDestination(),
      ...(shape.interceptionMode === 'TPROXY' ? [originalSource()] : []),
      ...inspectors([...describedPortChains, ...inboundPorts], otherPorts!),
    ],
    mesh,
    accessLog: listenerAccessLogs({ ...proxy, direction: 'inbound', listener: virtualInboundListener, port }),
    more: { ...transparencyFields(shape), ...dualStackAddresses(shape, port) },
  });
}

function inspectors(ports: readonly InboundPort[], otherPorts: InboundPort): ListenerFilter[] {
  const tls = matchingPortChoice(
    ports.map(({ port, detectsTls }) => ({ port, matches: detectsTls })),
    otherPorts.detectsTls,
  );
  const http = matchingPortChoice(
    ports.map(({ port, detectsHttp }) => ({ port, matches: detectsHttp })),
    otherPorts.detectsHttp,
  );
  return [...(tls ? [tlsInspector(tls)] : []), ...(http ? [httpInspector(http)] : [])];
}

/** Closes connections to the listener's own port, because forwarding them would loop. */
function blackHoleChain(name: string, context: ConnectionContext): FilterChain {
  return create(FilterChainSchema, {
    name,
    filterChainMatch: { destinationPort: context.port },
    filters: tcpFilters(context, { destinations: [{ cluster: blackHoleCluster, weight: 0 }] }),
  });
}

function transparencyFields(shape: ProxyShape): { transparent?: boolean } {
  return shape.interceptionMode === 'TPROXY' ? { transparent: true } : {};
}
