import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import { type ConfigKey, configKeyOf } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { addressingKey } from '../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { sidecarOrigin } from '../inputs/message-origin.ts';
import { isUnixSocket, unixSocketPath } from '../messages/address.ts';
import { type PartBlock, sharedBlock, sharedList } from '../messages/part-block.ts';
import { type EnvoyResource, type PartToEncode, ResourceOfParts } from '../messages/resource.ts';
import { requestFallbackCluster } from '../traffic/outbound-fallback.ts';
import { type ProxyReach, proxyReachOf } from '../traffic/reach.ts';
import { httpProxyRoute } from '../traffic/resource-names.ts';
import { type RoutePlan, virtualHostsField } from './plan/planned-routes.ts';
import { precomputeRoutePlan, routePlan } from './plan/route-plan.ts';
import type { RouteSelection } from './plan/sidecar-virtual-hosts.ts';
import { routesPart, VirtualHostPart } from './plan/virtual-host-part.ts';
import { fallbackHost } from './translate/fallback.ts';
import { routeConfiguration } from './translate/route-configuration.ts';
import { labelsIfMatched } from './translate/virtual-service-inputs.ts';

type Block = PartBlock<VirtualHostPart>;

export function sidecarRoutes(
  name: string,
  shape: ProxyShape,
  push: PushContext,
  cache: Memory = noMemory,
): EnvoyResource {
  const scope = push.sidecarScopeFor(shape);
  const selection = selectionOf(name, scope);
  // The configuration is not cached, because clients may request any number of unused names.
  if (selection === undefined) return configurationOf(name, noBlocks, [], scope, false);
  const key = clientText(name, selection, shape, scope, push);
  const reach = proxyReachOf(shape, push);
  const plan = routePlan(key, { selection, shape, push, scope, cache, reach });
  const blocks = selection.host === undefined ? withFallback(plan, scope, reach, cache) : plan.blocks;
  const allPorts = selection.port === undefined;
  const build = (): EnvoyResource => configurationOf(name, blocks, [plan], scope, allPorts);
  if (plan.blocks.length === 0) return build();
  const inputs = [scope.sidecar, blocks];
  return cache.getOrBuild('RDS', key, inputs, () => ({
    resource: sharedConfiguration(`${name} ${allPorts}`, blocks, build),
    dependsOn: noDependencies,
  })).resource;
}

export function* precomputeSidecarRoutes(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
  names: readonly string[],
): Generator<PartToEncode | undefined> {
  const scope = push.sidecarScopeFor(shape);
  const reach = proxyReachOf(shape, push);
  for (const name of names) {
    const selection = selectionOf(name, scope);
    if (selection === undefined || selection.host !== undefined) continue;
    const key = clientText(name, selection, shape, scope, push);
    yield* precomputeRoutePlan(key, { selection, shape, push, scope, cache, reach });
  }
}

const noDependencies: readonly ConfigKey[] = [];
const noBlocks: readonly Block[] = [];

function clientText(
  name: string,
  { egress, port }: RouteSelection,
  shape: ProxyShape,
  { sidecar }: SidecarScope,
  push: PushContext,
): string {
  const { configNamespace, dnsDomain, labels } = shape;
  const rules = push.destinationRulesSelecting(configNamespace, labels);
  const sidecarName = sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`;
  const client = `${configNamespace} ${dnsDomain} ${addressingKey(shape)} ${sidecarName} ${rules}`;
  return `${name} ${port === undefined} ${client} ${labelsIfMatched(egress.virtualServices, shape)}`;
}

function configurationOf(
  name: string,
  blocks: readonly Block[],
  plans: readonly RoutePlan[],
  { sidecar }: SidecarScope,
  allPorts: boolean,
): EnvoyResource {
  const dependsOn = (): readonly ConfigKey[] => [
    ...(sidecar ? [configKeyOf(sidecar)] : []),
    ...plans.flatMap((plan) => plan.routeDependencies()),
  ];
  const message = routeConfiguration(name, [], allPorts);
  const init = { name, schema: RouteConfigurationSchema, message, dependsOn };
  return new ResourceOfParts(init, blocks);
}

const withFallbacks = memoizeByObject((_: RoutePlan['blocks']) => new Map<Block, readonly Block[]>());

function withFallback(plan: RoutePlan, scope: SidecarScope, reach: ProxyReach, cache: Memory): readonly Block[] {
  const { blocks, hasCatchAll } = plan;
  if (hasCatchAll) return blocks;
  const { mode } = scope.outboundTrafficPolicy;
  const cluster = requestFallbackCluster(scope.outboundTrafficPolicy, reach);
  const { block: fallback } = cache.getOrBuild('RDS', `fallback ${mode} ${cluster}`, [], () => {
    const { name, domains, routes } = fallbackHost(scope, reach);
    const routesOnly = routesPart(routes, sidecarOrigin(scope, 'outboundTrafficPolicy'));
    const hostPart = new VirtualHostPart(name, domains, routesOnly);
    return { block: sharedBlock(virtualHostsField, [hostPart]), dependsOn: noDependencies };
  });
  const extendedByFallback = withFallbacks(blocks);
  let extendedBlocks = extendedByFallback.get(fallback);
  if (extendedBlocks === undefined) {
    extendedBlocks = sharedList([...blocks, fallback]);
    setBounded(extendedByFallback, fallback, extendedBlocks, maxFallbacks);
  }
  return extendedBlocks;
}

/** Cache limit: there are few outbound policy modes and egress proxy hosts. */
const maxFallbacks = 16;

const configurations = memoizeByObject((_: readonly Block[]) => new Map<string, EnvoyResource>());

function sharedConfiguration(key: string, blocks: readonly Block[], build: () => EnvoyResource): EnvoyResource {
  const configurationsByKey = configurations(blocks);
  let resource = configurationsByKey.get(key);
  if (resource === undefined) {
    resource = build();
    setBounded(configurationsByKey, key, resource, maxNames);
  }
  return resource;
}

/** Maximum number of cached names, because clients choose them. */
const maxNames = 16;

/** Parses `80`, `http_proxy`, `/run/egress.sock` or `mongo.example.com:27017`. */
function selectionOf(name: string, scope: SidecarScope): RouteSelection | undefined {
  const catchAll = scope.egressListeners.find((listener) => listener.port === undefined);
  if (name === httpProxyRoute) return catchAll && { egress: catchAll, listenerPort: 0 };
  if (/^\d+$/.test(name)) {
    const number = Number(name);
    const egressListener = scope.egressListeners.find((listener) => listener.port?.number === number);
    const egress = egressListener ?? catchAll;
    if (egress === undefined) return undefined;
    if (egressListener?.port?.protocol === 'HTTP_PROXY') return { egress, listenerPort: 0 };
    return { egress, listenerPort: number, port: number };
  }
  const socket = scope.egressListeners.find(
    ({ bind }) => bind !== undefined && isUnixSocket(bind) && unixSocketPath(bind) === name,
  );
  if (socket !== undefined) return { egress: socket, listenerPort: socket.port?.number ?? 0 };
  const colon = name.lastIndexOf(':');
  const port = Number(name.slice(colon + 1));
  if (colon <= 0 || !Number.isInteger(port) || port === 0) return undefined;
  const egress = scope.egressListeners.find((listener) => listener.port?.number === port) ?? catchAll;
  return egress && { egress, listenerPort: port, port, host: name.slice(0, colon) };
}
