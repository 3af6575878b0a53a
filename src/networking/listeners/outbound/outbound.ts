import { create } from '@bufbuild/protobuf';
import { type FilterChain, FilterChainSchema } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { type Listener, ListenerSchema } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { SidecarScope } from '../../../model/push-context/sidecar-scope.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import { fetchedPluginsText } from '../../extensions/build.ts';
import { type ConnectionContext, clientContext, type ProxyContext } from '../../inputs/connection-context.ts';
import type { Memory } from '../../inputs/generator-memory.ts';
import { ruleOrigins, sidecarOrigin, withOrigins } from '../../inputs/message-origin.ts';
import { policyKeys, policyObjects } from '../../inputs/policies.ts';
import { loopbackAddress } from '../../messages/address.ts';
import { resolvesDynamically } from '../../messages/dynamic-dns.ts';
import { type EnvoyResource, namedResource } from '../../messages/resource.ts';
import { telemetryOf } from '../../telemetry/connection-telemetry.ts';
import { resolveDestination } from '../../traffic/destination.ts';
import { fallbackCluster } from '../../traffic/outbound-fallback.ts';
import { proxyReachOf } from '../../traffic/reach.ts';
import { httpProxyRoute, listenerName } from '../../traffic/resource-names.ts';
import { chainMatch, passthroughChain, routeFilters } from '../filter-chain.ts';
import { acceptsHttp10 } from '../http10.ts';
import { httpInspector, plaintextAlpn, tlsInspector } from '../inspection.ts';
import { buildListener, dualStackAddresses } from '../listener.ts';
import { requestFilters } from '../network-filters/index.ts';
import { listenerAccessLogs } from '../observability/access-log.ts';
import type { ListenerPlan, TcpChainPlan } from './outbound-plan.ts';
import { buildOutboundPlanInSteps } from './outbound-services.ts';

export function* buildOutboundListenersInSteps(
  proxy: ProxyContext,
  cache: Memory,
): Generator<undefined, EnvoyResource[]> {
  const client = clientContext(proxy);
  const scope = proxy.push.sidecarScopeFor(proxy.shape);
  const { listeners } = yield* buildOutboundPlanInSteps(proxy.shape, proxy.push);
  const plannedListeners: EnvoyResource[] = [];
  for (const plan of listeners) {
    if (plan.http === undefined && plan.tcp.length === 0) continue;
    plannedListeners.push(sharedListener(plan, client, scope, cache));
    yield undefined;
  }
  const httpProxy = httpProxyListener(client);
  return httpProxy
    ? [...plannedListeners, namedResource(ListenerSchema, httpProxy, policyKeys(client.policies))]
    : plannedListeners;
}

function sharedListener(plan: ListenerPlan, client: ProxyContext, scope: SidecarScope, cache: Memory): EnvoyResource {
  const { bind, port, bindToPort, http, tcp } = plan;
  const { shape, push, policies } = client;
  const { IDLE_TIMEOUT } = shape.metadata;
  const telemetry = telemetryOf(client, 'CLIENT');
  const policy = scope.outboundTrafficPolicy;
  const fallback = `${policy.mode} ${fallbackCluster(policy, proxyReachOf(shape, push))}`;
  const chains = tcp.map(({ origins: _, ...chain }) => chain);
  const families = isUnspecified(bind) || resolvesDynamically(shape, push) ? shape.ipFamily : '';
  const selectingRules = push.destinationRulesSelecting(shape.configNamespace, shape.labels);
  const keyParts = [
    selectingRules,
    acceptsHttp10(client),
    IDLE_TIMEOUT,
    families,
    resolvesDynamically(shape, push),
    fallback,
    telemetry.text,
    fetchedPluginsText(shape, push),
  ];
  const key = JSON.stringify([bind, port, bindToPort, http, chains, keyParts, policies.id]);
  const reach = proxyReachOf(shape, push);
  const rules = tcp.flatMap(({ firstDestination, port: chainPort }) => {
    const { service, serviceWithRule } = resolveDestination(firstDestination, chainPort, reach);
    return [service, serviceWithRule, serviceWithRule && reach.destinationRuleFor(serviceWithRule)];
  });
  return cache.getOrBuild('LDS', key, [push.mesh, ...rules, ...policyObjects(policies)], () =>
    namedResource(ListenerSchema, toListener(plan, client, scope), [
      ...plan.dependsOn,
      ...policyKeys(policies),
      ...telemetry.dependsOn,
    ]),
  );
}

function toListener(plan: ListenerPlan, client: ProxyContext, scope: SidecarScope): Listener {
  const { http, bind, port } = plan;
  const name = listenerName(bind, port);
  const context: ConnectionContext = { ...client, direction: 'outbound', listener: name, port };
  const tcp = plan.tcp.map((chain) => ({
    everything: chainMatch(chain.match) === undefined,
    bySni: (chain.match.serverNames?.length ?? 0) > 0,
    chain: tcpChain(chain, context),
  }));
  const catchAllChain = tcp.find(({ everything }) => everything)?.chain;
  const isRedirected = !plan.bindToPort && isUnspecified(bind);
  // HTTP must be detected if the listener has several chains, or receives traffic for other destinations on the port.
  const detectsHttp = http !== undefined && (isRedirected || tcp.length > 0);
  // Must be the default chain: Envoy would never select it after a match of another chain's range, even if that chain's other conditions fail.
  const defaultChain = detectsHttp || tcp.length > 1 ? catchAllChain : undefined;
  const chains = tcp.map(({ chain }) => chain).filter((chain) => chain !== defaultChain);
  if (http !== undefined) chains.unshift(httpChain(plan, http, context, detectsHttp));
  return buildListener({
    name,
    direction: 'outbound',
    bind,
    port,
    bindToPort: plan.bindToPort,
    filterChains: chains,
    defaultFilterChain: defaultChain ?? fallbackChain(isRedirected && !catchAllChain, context, scope),
    listenerFilters: [
      ...(tcp.some(({ bySni }) => bySni) || (detectsHttp && tcp.length > 0) ? [tlsInspector()] : []),
      ...(detectsHttp ? [httpInspector()] : []),
    ],
    mesh: client.push.mesh,
    accessLog: listenerAccessLogs(context),
    ...(isRedirected && { more: dualStackAddresses(client.shape, port) }),
  });
}

function tcpChain(plan: TcpChainPlan, context: ConnectionContext): FilterChain {
  const reach = proxyReachOf(context.shape, context.push);
  const { serviceWithRule } = resolveDestination(plan.firstDestination, plan.port, reach);
  const chain = create(FilterChainSchema, {
    filterChainMatch: chainMatch(plan.match),
    filters: routeFilters(plan, context, reach),
  });
  return withOrigins(chain, [
    ...plan.origins,
    ...ruleOrigins(serviceWithRule && reach.destinationRuleFor(serviceWithRule)),
  ]);
}

function httpChain(
  plan: ListenerPlan,
  http: NonNullable<ListenerPlan['http']>,
  context: ConnectionContext,
  detectsHttp: boolean,
): FilterChain {
  const http10 = acceptsHttp10(context);
  const { grpcWeb, absoluteUrl = false } = http;
  const chain = create(FilterChainSchema, {
    ...(detectsHttp && {
      filterChainMatch: { transportProtocol: 'raw_buffer', applicationProtocols: plaintextAlpn(http10) },
    }),
    filters: requestFilters(context, { routes: http.routeName, grpcWeb, http10, absoluteUrl }),
  });
  return withOrigins(chain, plan.httpOrigins);
}

function fallbackChain(
  needsFallback: boolean,
  context: ConnectionContext,
  scope: SidecarScope,
): FilterChain | undefined {
  if (!needsFallback) return undefined;
  const cluster = fallbackCluster(scope.outboundTrafficPolicy, proxyReachOf(context.shape, context.push));
  return passthroughChain(cluster, context, sidecarOrigin(scope, 'outboundTrafficPolicy'));
}

function httpProxyListener(client: ProxyContext): Listener | undefined {
  const { shape, push } = client;
  const port = Number(shape.metadata.HTTP_PROXY_PORT) || push.mesh.proxyHttpPort;
  if (port === 0) return undefined;
  const bind = loopbackAddress(shape.ipFamily);
  const name = listenerName(bind, port);
  const context: ConnectionContext = { ...client, direction: 'outbound', listener: name, port };
  const filters = requestFilters(context, {
    routes: httpProxyRoute,
    http10: acceptsHttp10(context),
    absoluteUrl: true,
  });
  return buildListener({
    name,
    direction: 'outbound',
    bind,
    port,
    bindToPort: true,
    filterChains: [create(FilterChainSchema, { filters })],
    mesh: push.mesh,
    accessLog: listenerAccessLogs(context),
  });
}
