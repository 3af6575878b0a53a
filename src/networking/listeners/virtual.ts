/** The two listeners that redirection rules lead to (spec/discovery.md §8.4). */
import { create } from '@bufbuild/protobuf';
import { type FilterChain, FilterChainSchema } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { MeshConfig } from '../../model/mesh-config.ts';
import type { ProxyShape } from '../../model/proxy-shape.ts';
import type { PushContext } from '../../model/push-context.ts';
import { wildcardAddress } from '../address.ts';
import {
  blackHoleCluster,
  inboundPassthroughCluster,
  virtualInboundListener,
  virtualOutboundListener,
} from '../names.ts';
import { fallbackCluster } from '../outbound-fallback.ts';
import { passthroughRoutes } from '../routes/inbound.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { httpInspector, originalDestination, plaintextAlpn, tlsInspector } from './inspection.ts';
import { makeListener } from './listener.ts';
import { tcpFilters } from './tcp-proxy.ts';

/** Takes all redirected outbound connections and hands each to the listener of its destination, if there is one. */
export function virtualOutbound(shape: ProxyShape, push: PushContext): Listener {
  const { mesh } = push;
  const scope = push.sidecarScopeFor(shape);
  return makeListener({
    name: virtualOutboundListener,
    direction: 'outbound',
    bind: wildcardAddress(shape.ipFamily),
    port: mesh.proxyListenPort,
    bindToPort: true,
    filterChains: [
      blackHoleChain('virtualOutbound-blackhole', mesh.proxyListenPort, mesh),
      create(FilterChainSchema, {
        name: 'virtualOutbound-catchall-tcp',
        filters: tcpFilters({
          destinations: [{ cluster: fallbackCluster(scope.outboundTrafficPolicy, scope), weight: 0 }],
          mesh,
        }),
      }),
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
export function virtualInbound(shape: ProxyShape, push: PushContext, ports: readonly InboundPort[]): Listener {
  const { mesh } = push;
  return makeListener({
    name: virtualInboundListener,
    direction: 'inbound',
    bind: wildcardAddress(shape.ipFamily),
    port: mesh.proxyInboundListenPort,
    bindToPort: true,
    filterChains: [
      blackHoleChain('virtualInbound-blackhole', mesh.proxyInboundListenPort, mesh),
      ...passthroughChains(shape, mesh),
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
function blackHoleChain(name: string, port: number, mesh: MeshConfig): FilterChain {
  return create(FilterChainSchema, {
    name,
    filterChainMatch: { destinationPort: port },
    filters: tcpFilters({ destinations: [{ cluster: blackHoleCluster, weight: 0 }], mesh }),
  });
}

/** Ports that no service describes. */
function passthroughChains(shape: ProxyShape, mesh: MeshConfig): FilterChain[] {
  const http10 = shape.metadata.HTTP10 === '1';
  const name = 'virtualInbound-catchall-http';
  return [
    create(FilterChainSchema, {
      name,
      filterChainMatch: { transportProtocol: 'raw_buffer', applicationProtocols: plaintextAlpn(http10) },
      filters: [
        httpConnectionManager({ direction: 'inbound', listener: name, routes: passthroughRoutes(), mesh, http10 }),
      ],
    }),
    create(FilterChainSchema, {
      name: 'virtualInbound',
      filters: tcpFilters({ destinations: [{ cluster: inboundPassthroughCluster, weight: 0 }], mesh }),
    }),
  ];
}

function transparency(shape: ProxyShape): { transparent?: boolean } {
  return shape.interceptionMode === 'TPROXY' ? { transparent: true } : {};
}
