/** The listeners of a sidecar's outbound traffic, from their plan (spec/discovery.md §8.4). */
import { create } from '@bufbuild/protobuf';
import { type FilterChain, FilterChainSchema } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import type { SidecarScope } from '../../model/sidecar-scope.ts';
import { ipFamilyOf, isWildcardAddress, loopbackAddress } from '../address.ts';
import { httpProxyRoute, listenerName } from '../names.ts';
import { fallbackCluster } from '../outbound-fallback.ts';
import { namedResource, type Resource } from '../resource.ts';
import { chainMatch, passthroughChain, routeFilters } from './filter-chain.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { httpInspector, plaintextAlpn, tlsInspector } from './inspection.ts';
import { makeListener } from './listener.ts';
import type { ListenerPlan } from './outbound-plan.ts';
import { planOutbound } from './outbound-services.ts';

export function outboundListeners(view: ProxyView, push: PushContext): Resource[] {
  const scope = push.sidecarScopeFor(view);
  const planned = planOutbound(view, push)
    .listeners.filter((plan) => plan.http !== undefined || plan.tcp.length > 0)
    .map((plan) => namedResource(ListenerSchema, toListener(plan, view, push, scope), plan.dependsOn));
  const proxy = httpProxyListener(view, push);
  return proxy ? [...planned, namedResource(ListenerSchema, proxy)] : planned;
}

function toListener(plan: ListenerPlan, view: ProxyView, push: PushContext, scope: SidecarScope): Listener {
  const { mesh } = push;
  const { http } = plan;
  const tcp = plan.tcp.map((chain) => ({
    everything: chainMatch(chain.match) === undefined,
    bySni: (chain.match.serverNames?.length ?? 0) > 0,
    chain: create(FilterChainSchema, {
      filterChainMatch: chainMatch(chain.match),
      filters: routeFilters(chain, view, scope, mesh),
    }),
  }));
  const catchesAll = tcp.find(({ everything }) => everything)?.chain;
  const captured = !plan.bindToPort && isWildcardAddress(plan.bind);
  // Several chains, or other people's traffic on the port: HTTP must be recognised before it is spoken.
  const sniffed = http !== undefined && (captured || tcp.length > 0);
  const chains = tcp.map(({ chain }) => chain).filter((chain) => !sniffed || chain !== catchesAll);
  if (http !== undefined) chains.unshift(httpChain(plan, http, view, push, sniffed));
  return makeListener({
    name: listenerName(plan.bind, plan.port),
    direction: 'outbound',
    bind: plan.bind,
    port: plan.port,
    bindToPort: plan.bindToPort,
    filterChains: chains,
    defaultFilterChain: sniffed && catchesAll ? catchesAll : fallbackChain(captured && !catchesAll, push, scope),
    listenerFilters: [
      ...(tcp.some(({ bySni }) => bySni) || (sniffed && tcp.length > 0) ? [tlsInspector()] : []),
      ...(sniffed ? [httpInspector()] : []),
    ],
    mesh,
  });
}

function httpChain(
  plan: ListenerPlan,
  http: NonNullable<ListenerPlan['http']>,
  view: ProxyView,
  push: PushContext,
  sniffed: boolean,
): FilterChain {
  const http10 = view.metadata.HTTP10 === '1';
  return create(FilterChainSchema, {
    ...(sniffed && {
      filterChainMatch: { transportProtocol: 'raw_buffer', applicationProtocols: plaintextAlpn(http10) },
    }),
    filters: [
      httpConnectionManager({
        direction: 'outbound',
        listener: listenerName(plan.bind, plan.port),
        routes: http.routeName,
        mesh: push.mesh,
        grpcWeb: http.grpcWeb,
        http10,
        absoluteUrl: http.absoluteUrl ?? false,
      }),
    ],
  });
}

function fallbackChain(wanted: boolean, push: PushContext, scope: SidecarScope): FilterChain | undefined {
  return wanted ? passthroughChain(fallbackCluster(scope.outboundTrafficPolicy, scope), push.mesh) : undefined;
}

/** For applications that are told to use an HTTP proxy. */
function httpProxyListener(view: ProxyView, { mesh }: PushContext): Listener | undefined {
  const port = Number(view.metadata.HTTP_PROXY_PORT) || mesh.proxyHttpPort;
  if (port === 0) return undefined;
  const bind = loopbackAddress(ipFamilyOf(view.ipAddresses));
  const name = listenerName(bind, port);
  const manager = httpConnectionManager({
    direction: 'outbound',
    listener: name,
    routes: httpProxyRoute,
    mesh,
    absoluteUrl: true,
  });
  return makeListener({
    name,
    direction: 'outbound',
    bind,
    port,
    bindToPort: true,
    filterChains: [create(FilterChainSchema, { filters: [manager] })],
    mesh,
  });
}
