/** Patches of route configurations (spec/discovery.md §8.9): of those that are resources, and of those in listeners. */

import { type VirtualHost, VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { configKeyOf } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { mergeGateways } from '../gateway/merge.ts';
import { PartBlock } from '../messages/part-block.ts';
import { Encodable, type Part, Resource, ResourceOfParts } from '../messages/resource.ts';
import { virtualHostsField } from '../routes/route-plan.ts';
import { listsOf } from './in-turn.ts';
import { kept } from './kept.ts';
import { KeyedPatches, keyOfFirst } from './keyed-patches.ts';
import { merged, shallowCopy } from './merge.ts';
import { type HeldPatch, isForPlace, type PatchSet, type PlaceContext, routePatches, valueAs } from './patch-set.ts';
import { attempt } from './status.ts';
import { addedHosts, hostKeys, isHostMet, patchedHost, UniqueHosts, wantedHost } from './virtual-hosts.ts';

export function patchedRoutes(
  configurations: Resource[],
  patches: PatchSet,
  shape: ProxyShape,
  push: PushContext,
): Resource[] {
  const place = shape.type === 'router' ? 'GATEWAY' : 'SIDECAR_OUTBOUND';
  const possible = possibleOf(patches, place);
  if (possible === undefined) return configurations;
  const factsOf = factsFor(shape, push);
  return configurations.map((resource) => {
    const facts = factsOf(resource);
    const met = possible.for(keysOf(facts)).filter((held) => isConfigurationMet(held, facts));
    if (met.length === 0) return resource;
    return kept(resource, patches, met.map(({ index }) => index).join(), () => patchedResource(resource, met, patches));
  });
}

const possibilities = new WeakMap<PatchSet, Map<PlaceContext, KeyedPatches | undefined>>();

/** Patches of routes for a place; undefined when there are none. */
function possibleOf(patches: PatchSet, place: PlaceContext): KeyedPatches | undefined {
  const byPlace = possibilities.get(patches) ?? new Map<PlaceContext, KeyedPatches | undefined>();
  possibilities.set(patches, byPlace);
  if (!byPlace.has(place)) {
    const possible = routePatches(patches).filter((held) => isForPlace(held, place));
    byPlace.set(place, possible.length === 0 ? undefined : new KeyedPatches(possible, (held) => keyOf(held, place)));
  }
  return byPlace.get(place);
}

/** What a patch looks for. The hosts of a gateway's configurations are at hand; those of a sidecar's would have to be decoded. */
function keyOf({ patch }: HeldPatch, place: PlaceContext): string | undefined {
  const { name, portName, gateway, vhost } = patch.match.routeConfiguration ?? {};
  const isNewHost = patch.applyTo === 'VIRTUAL_HOST' && patch.operation === 'ADD';
  const host = place === 'GATEWAY' && !isNewHost ? vhost : undefined;
  return keyOfFirst({ name, portName, gateway, vhost: host?.name, domain: host?.domainName });
}

function* keysOf({ name, portNames = none, gateways = none, hosts }: RouteFacts): Iterable<string> {
  yield `name ${name}`;
  for (const portName of portNames) yield `portName ${portName}`;
  for (const gateway of gateways) yield `gateway ${gateway}`;
  for (const host of hosts?.() ?? []) yield* hostKeys(host);
}

function patchedResource(resource: Resource, met: readonly HeldPatch[], patches: PatchSet): Resource {
  const dependsOn = () => [...resource.dependsOn, ...met.map(({ filter }) => configKeyOf(filter))];
  const { name, schema } = resource;
  const isOfParts = resource instanceof ResourceOfParts;
  const message = resource.message as RouteConfiguration;
  if (!isOfParts) {
    const changed = patchedConfiguration(message, met, (host, held) => patchedHost(host, held));
    return changed === message ? resource : new Resource(name, schema, changed, dependsOn);
  }
  // Parts that nothing touches stay what they are, and those that are patched are patched once for all who have them.
  const partOf = new Map(resource.parts.map((part, index) => [message.virtualHosts[index]!, part]));
  const ofPatched = new Map<VirtualHost, Part>();
  const changed = patchedConfiguration(message, met, (host, held) => {
    const part = partOf.get(host);
    if (part === undefined) return patchedHost(host, held);
    const key = held.map(({ index }) => index).join();
    const made = kept(part, patches, key, () => {
      const after = patchedHost(host, held);
      return after && after !== host ? { after, part: new Encodable(VirtualHostSchema, after) } : { after, part };
    });
    if (made.after === undefined || made.part === part) return made.after && host;
    ofPatched.set(made.after, made.part);
    return made.after;
  });
  if (changed === message) return resource;
  const parts = changed.virtualHosts.map(
    (host) => partOf.get(host) ?? ofPatched.get(host) ?? new Encodable(VirtualHostSchema, host),
  );
  const rest: RouteConfiguration = shallowCopy(changed);
  rest.virtualHosts = [];
  return new ResourceOfParts({ name, schema, message: rest, dependsOn }, [new PartBlock(virtualHostsField, parts)]);
}

/** Routes that lie in a listener of a sidecar. */
export function patchedInlineRoutes(routes: RouteConfiguration, patches: readonly HeldPatch[]): RouteConfiguration {
  const [, port] = /^inbound\|(\d+)\|/.exec(routes.name) ?? [];
  const facts: RouteFacts = { name: routes.name, ports: new Set(port === undefined ? [] : [Number(port)]) };
  const met = patches.filter((held) => isConfigurationMet(held, facts));
  return met.length === 0 ? routes : patchedConfiguration(routes, met, patchedHost);
}

/** @param patchHost gives the very same host when nothing in it is another, none for one that is removed */
function patchedConfiguration(
  routes: RouteConfiguration,
  met: readonly HeldPatch[],
  patchHost: (host: VirtualHost, held: readonly HeldPatch[]) => VirtualHost | undefined,
): RouteConfiguration {
  const byTarget = Map.groupBy(met, ({ patch }) => patch.applyTo);
  const ofWhole = (byTarget.get('ROUTE_CONFIGURATION') ?? []).filter(
    (held) =>
      held.patch.match.routeConfiguration?.vhost === undefined ||
      routes.virtualHosts.some((host) => isHostMet(held, host)),
  );
  const whole = ofWhole.reduce(withMerged, routes);
  const ofHosts = met.filter(({ patch }) => patch.applyTo !== 'ROUTE_CONFIGURATION');
  const changing = ofHosts.filter(({ patch }) => patch.applyTo !== 'VIRTUAL_HOST' || patch.operation !== 'ADD');
  const unique = new UniqueHosts(whole.virtualHosts);
  const byHost = new KeyedPatches(changing, wantedHost);
  const hosts = whole.virtualHosts.flatMap((host) => {
    const held = byHost.for(hostKeys(host)).filter((one) => isHostMet(one, host));
    if (held.length === 0) return [host];
    return unique.changed(host, patchHost(host, held), held) ?? [];
  });
  hosts.push(...addedHosts(ofHosts, hosts));
  if (sameItems(hosts, whole.virtualHosts)) return whole;
  const result: RouteConfiguration = shallowCopy(whole);
  result.virtualHosts = hosts;
  return result;
}

/** Listeners refer to it by its name: that stays. */
function withMerged(routes: RouteConfiguration, held: HeldPatch): RouteConfiguration {
  return attempt(held, routes, () => {
    const result = merged(RouteConfigurationSchema, routes, valueAs(RouteConfigurationSchema, held), listsOf(held));
    result.name = routes.name;
    return result;
  });
}

/** What a route configuration is for, besides what it says. */
interface RouteFacts {
  readonly name: string;
  readonly ports: ReadonlySet<number>;
  readonly portNames?: ReadonlySet<string>;
  /** `namespace/name`. */
  readonly gateways?: ReadonlySet<string>;
  /** Absent where patches are not found by them. */
  readonly hosts?: () => readonly VirtualHost[];
}

const none: ReadonlySet<string> = new Set();

function factsFor(shape: ProxyShape, push: PushContext): (resource: Resource) => RouteFacts {
  if (shape.type === 'sidecar') {
    return ({ name }) => {
      const port = Number(name.slice(name.lastIndexOf(':') + 1));
      return { name, ports: new Set(Number.isInteger(port) ? [port] : []) };
    };
  }
  const { routes } = mergeGateways(shape, push);
  return (resource) => {
    const servers = routes.get(resource.name) ?? [];
    return {
      name: resource.name,
      // The port of the object, and the one that the proxy listens on in its place.
      ports: new Set(servers.flatMap(({ server, port }) => [server.port.number, port])),
      portNames: new Set(servers.map(({ server }) => server.port.name)),
      gateways: new Set(servers.map(({ gateway }) => `${gateway.namespace}/${gateway.name}`)),
      hosts: () => (resource.message as RouteConfiguration).virtualHosts,
    };
  };
}

function isConfigurationMet(
  { patch }: HeldPatch,
  { name, ports, portNames = none, gateways = none }: RouteFacts,
): boolean {
  const wanted = patch.match.routeConfiguration ?? {};
  if (wanted.name !== undefined && wanted.name !== '' && wanted.name !== name) return false;
  if (wanted.portNumber !== undefined && !ports.has(wanted.portNumber)) return false;
  if (wanted.portName !== undefined && wanted.portName !== '' && !portNames.has(wanted.portName)) return false;
  return wanted.gateway === undefined || wanted.gateway === '' || gateways.has(wanted.gateway);
}
