/** The listeners of a sidecar's outbound traffic, from their plan (spec/discovery.md §8.4). */
import { create } from '@bufbuild/protobuf';
import { type FilterChain, FilterChainSchema } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { ProxyShape } from '../../model/proxy-shape.ts';
import type { PushContext } from '../../model/push-context.ts';
import type { SidecarScope } from '../../model/sidecar-scope.ts';
import { isWildcardAddress, loopbackAddress } from '../address.ts';
import { resolveDestination } from '../destination.ts';
import type { Memory } from '../memory.ts';
import { httpProxyRoute, listenerName } from '../names.ts';
import { fallbackCluster } from '../outbound-fallback.ts';
import { namedResource, type Resource } from '../resource.ts';
import { chainMatch, passthroughChain, routeFilters } from './filter-chain.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { httpInspector, plaintextAlpn, tlsInspector } from './inspection.ts';
import { makeListener } from './listener.ts';
import type { ListenerPlan } from './outbound-plan.ts';
import { planOutbound } from './outbound-services.ts';

export function outboundListeners(shape: ProxyShape, push: PushContext, memory: Memory): Resource[] {
  const scope = push.sidecarScopeFor(shape);
  const planned = planOutbound(shape, push)
    .listeners.filter((plan) => plan.http !== undefined || plan.tcp.length > 0)
    .map((plan) => sharedListener(plan, shape, push, scope, memory));
  const proxy = httpProxyListener(shape, push);
  return proxy ? [...planned, namedResource(ListenerSchema, proxy)] : planned;
}

/** The listener of a plan, made once for all that have the same plan and the same traffic policies in it. */
function sharedListener(
  plan: ListenerPlan,
  shape: ProxyShape,
  push: PushContext,
  scope: SidecarScope,
  memory: Memory,
): Resource {
  const { bind, port, bindToPort, http, tcp } = plan;
  const { HTTP10, IDLE_TIMEOUT } = shape.metadata;
  const policy = scope.outboundTrafficPolicy;
  const fallback = `${policy.mode} ${fallbackCluster(policy, scope)}`;
  const key = JSON.stringify([bind, port, bindToPort, http, tcp, HTTP10, IDLE_TIMEOUT, fallback]);
  const rules = tcp.flatMap(({ first, port: chainPort }) => {
    const { service } = resolveDestination(first, chainPort, scope);
    return [service, service && scope.destinationRuleFor(service)];
  });
  return memory.recall('LDS', key, [push.mesh, ...rules], () =>
    namedResource(ListenerSchema, toListener(plan, shape, push, scope), plan.dependsOn),
  );
}

function toListener(plan: ListenerPlan, shape: ProxyShape, push: PushContext, scope: SidecarScope): Listener {
  const { mesh } = push;
  const { http } = plan;
  const tcp = plan.tcp.map((chain) => ({
    everything: chainMatch(chain.match) === undefined,
    bySni: (chain.match.serverNames?.length ?? 0) > 0,
    chain: create(FilterChainSchema, {
      filterChainMatch: chainMatch(chain.match),
      filters: routeFilters(chain, shape, scope, mesh),
    }),
  }));
  const catchesAll = tcp.find(({ everything }) => everything)?.chain;
  const captured = !plan.bindToPort && isWildcardAddress(plan.bind);
  // Several chains, or other people's traffic on the port: HTTP must be recognised before it is spoken.
  const sniffed = http !== undefined && (captured || tcp.length > 0);
  const chains = tcp.map(({ chain }) => chain).filter((chain) => !sniffed || chain !== catchesAll);
  if (http !== undefined) chains.unshift(httpChain(plan, http, shape, push, sniffed));
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
  shape: ProxyShape,
  push: PushContext,
  sniffed: boolean,
): FilterChain {
  const http10 = shape.metadata.HTTP10 === '1';
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
function httpProxyListener(shape: ProxyShape, { mesh }: PushContext): Listener | undefined {
  const port = Number(shape.metadata.HTTP_PROXY_PORT) || mesh.proxyHttpPort;
  if (port === 0) return undefined;
  const bind = loopbackAddress(shape.ipFamily);
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
