/** Route configurations of a sidecar's outbound listeners (spec/discovery.md §8.5). */
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { onceFor } from '../../model/collections/once-for.ts';
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
import { type AheadPart, type Resource, ResourceOfParts } from '../messages/resource.ts';
import { requestFallbackCluster } from '../traffic/outbound-fallback.ts';
import { type Reach, reachOf } from '../traffic/reach.ts';
import { httpProxyRoute } from '../traffic/resource-names.ts';
import { type RoutePlan, virtualHostsField } from './plan/planned-routes.ts';
import { routePlan, routePlanAhead } from './plan/route-plan.ts';
import type { RouteSelection } from './plan/sidecar-virtual-hosts.ts';
import { routesPart, VirtualHostPart } from './plan/virtual-host-part.ts';
import { fallbackHost } from './translate/fallback.ts';
import { routeConfiguration } from './translate/route-configuration.ts';
import { labelsThatCount } from './translate/virtual-service-inputs.ts';

type Block = PartBlock<VirtualHostPart>;

/** The configuration of a name; one without virtual hosts for a name that no listener of the proxy uses. */
export function sidecarRoutes(name: string, shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource {
  const scope = push.sidecarScopeFor(shape);
  const selection = selectionOf(name, scope);
  // A name under which there is no host is not remembered: there is no end of such names.
  if (selection === undefined) return configurationOf(name, noBlocks, [], scope, false);
  const key = clientText(name, selection, shape, scope, push);
  const reach = reachOf(shape, push);
  const plan = routePlan(key, { selection, shape, push, scope, memory, reach });
  const blocks = selection.host === undefined ? withFallback(plan, scope, reach, memory) : plan.blocks;
  const allPorts = selection.port === undefined;
  const make = (): Resource => configurationOf(name, blocks, [plan], scope, allPorts);
  if (plan.blocks.length === 0) return make();
  const inputs = [scope.sidecar, blocks];
  return memory.recall('RDS', key, inputs, () => ({
    resource: sharedConfiguration(`${name} ${allPorts}`, blocks, make),
    dependsOn: none,
  })).resource;
}

/** What takes long of the configurations of these names, a virtual host at a time. */
export function* sidecarRoutesAhead(
  shape: ProxyShape,
  push: PushContext,
  memory: Memory,
  names: readonly string[],
): Generator<AheadPart | undefined> {
  const scope = push.sidecarScopeFor(shape);
  const reach = reachOf(shape, push);
  for (const name of names) {
    const selection = selectionOf(name, scope);
    if (selection === undefined || selection.host !== undefined) continue;
    const key = clientText(name, selection, shape, scope, push);
    yield* routePlanAhead(key, { selection, shape, push, scope, memory, reach });
  }
}

const none: readonly ConfigKey[] = [];
const noBlocks: readonly Block[] = [];

/** What of a client tells its configuration from that of others who ask for the same name. */
function clientText(
  name: string,
  { egress, port }: RouteSelection,
  shape: ProxyShape,
  { sidecar }: SidecarScope,
  push: PushContext,
): string {
  const { configNamespace, dnsDomain, labels } = shape;
  const rules = push.destinationRulesSelecting(configNamespace, labels);
  const own = sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`;
  const client = `${configNamespace} ${dnsDomain} ${addressingKey(shape)} ${own} ${rules}`;
  return `${name} ${port === undefined} ${client} ${labelsThatCount(egress.virtualServices, shape)}`;
}

function configurationOf(
  name: string,
  blocks: readonly Block[],
  plans: readonly RoutePlan[],
  { sidecar }: SidecarScope,
  allPorts: boolean,
): Resource {
  const dependsOn = (): readonly ConfigKey[] => [
    ...(sidecar ? [configKeyOf(sidecar)] : []),
    ...plans.flatMap((plan) => plan.routesDependOn()),
  ];
  const message = routeConfiguration(name, [], allPorts);
  const whole = { name, schema: RouteConfigurationSchema, message, dependsOn };
  return new ResourceOfParts(whole, blocks);
}

const withFallbacks = onceFor((_: RoutePlan['blocks']) => new Map<Block, readonly Block[]>());

/** The virtual hosts, with one that takes what no other does, unless one of them does already. */
function withFallback(plan: RoutePlan, scope: SidecarScope, reach: Reach, memory: Memory): readonly Block[] {
  const { blocks, takesAll } = plan;
  if (takesAll) return blocks;
  const { mode } = scope.outboundTrafficPolicy;
  const cluster = requestFallbackCluster(scope.outboundTrafficPolicy, reach);
  const { block: fallback } = memory.recall('RDS', `fallback ${mode} ${cluster}`, [], () => {
    const { name, domains, routes } = fallbackHost(scope, reach);
    const rest = routesPart(routes, sidecarOrigin(scope, 'outboundTrafficPolicy'));
    const part = new VirtualHostPart(name, domains, rest);
    return { block: sharedBlock(virtualHostsField, [part]), dependsOn: none };
  });
  const known = withFallbacks(blocks);
  let whole = known.get(fallback);
  if (whole === undefined) {
    whole = sharedList([...blocks, fallback]);
    setBounded(known, fallback, whole, maxFallbacks);
  }
  return whole;
}

/** Ways to treat what is not described: a few, and hosts of egress proxies. */
const maxFallbacks = 16;

const configurations = onceFor((_: readonly Block[]) => new Map<string, Resource>());

/** The same virtual hosts make the same configuration, whoever it is for. */
function sharedConfiguration(key: string, blocks: readonly Block[], make: () => Resource): Resource {
  const known = configurations(blocks);
  let resource = known.get(key);
  if (resource === undefined) {
    resource = make();
    setBounded(known, key, resource, maxNames);
  }
  return resource;
}

/** Names of the same virtual hosts: clients say them. */
const maxNames = 16;

/** `80`, `http_proxy`, `/run/egress.sock`, `mongo.example.com:27017`. */
function selectionOf(name: string, scope: SidecarScope): RouteSelection | undefined {
  const catchAll = scope.egressListeners.find((listener) => listener.port === undefined);
  if (name === httpProxyRoute) return catchAll && { egress: catchAll, listenerPort: 0 };
  if (/^\d+$/.test(name)) {
    const number = Number(name);
    const own = scope.egressListeners.find((listener) => listener.port?.number === number);
    const egress = own ?? catchAll;
    if (egress === undefined) return undefined;
    if (own?.port?.protocol === 'HTTP_PROXY') return { egress, listenerPort: 0 };
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
