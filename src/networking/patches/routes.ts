/** Patches of route configurations (spec/discovery.md §8.9): of those that are resources, and of those in listeners. */

import { type VirtualHost, VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { configKeyOf } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { mergeGateways } from '../gateway/merge-gateways.ts';
import { PartBlock } from '../messages/part-block.ts';
import { Encodable, Resource, ResourceOfParts } from '../messages/resource.ts';
import { virtualHostsField } from '../routes/plan/planned-routes.ts';
import type { VirtualHostPart } from '../routes/plan/virtual-host-part.ts';
import type { HeldPatch } from './held-patch.ts';
import { listsOf } from './in-turn.ts';
import { kept } from './kept.ts';
import { KeyedPatches, keyOfFirst } from './keyed-patches.ts';
import { merged, shallowCopy } from './merge-messages.ts';
import { isForPlace, type PatchSet, type PlaceContext, routePatches, valueAs } from './patch-set.ts';
import { attempt } from './status.ts';
import {
  addedHosts,
  hostKeys,
  isCalledAs,
  isHostMet,
  type NamedHost,
  patchedHost,
  UniqueHosts,
  wantedHost,
} from './virtual-hosts.ts';

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
  if (resource instanceof ResourceOfParts) {
    const before = resource.rest as RouteConfiguration;
    const patched = patchedOfParts(before, resource.blocks as readonly Block[], met, patches);
    if (patched?.rest === before && sameItems(patched.blocks, resource.blocks)) return resource;
    if (patched !== undefined) {
      return new ResourceOfParts({ name, schema, message: patched.rest, dependsOn }, patched.blocks);
    }
  }
  const message = resource.message as RouteConfiguration;
  const changed = patchedConfiguration(message, met);
  return changed === message ? resource : new Resource(name, schema, changed, dependsOn);
}

type Block = PartBlock<VirtualHostPart>;

/**
 * Looks into those virtual hosts alone that a patch is for: the others stay as they are encoded, and what is patched is patched
 * once for all configurations that have it. Undefined when a patch of the whole brings virtual hosts: all are looked into then.
 */
function patchedOfParts(
  configuration: RouteConfiguration,
  before: readonly Block[],
  met: readonly HeldPatch[],
  patches: PatchSet,
): { readonly rest: RouteConfiguration; readonly blocks: readonly PartBlock[] } | undefined {
  const all = (): readonly VirtualHostPart[] => before.flatMap(({ parts }) => parts);
  const { ofWhole, changing, adding } = byTarget(met, all);
  const rest = ofWhole.reduce(withMerged, configuration);
  if (rest.virtualHosts.length > 0) return undefined;
  const byHost = new KeyedPatches(changing, wantedHost);
  const key = `block ${changing.map(({ index }) => index).join()}`;
  const patched = before.map((block) => kept(block, patches, key, () => patchedBlock(block, byHost, patches)));
  const areCalledAsBefore = patched.every(({ isCalledAsBefore }) => isCalledAsBefore);
  const fitting = areCalledAsBefore ? patched.map(({ after }) => after) : fittingBlocks(patched, all());
  const blocks: PartBlock[] = fitting.filter(({ parts }) => parts.length > 0);
  const added =
    adding.length === 0
      ? []
      : addedHosts(
          adding,
          fitting.flatMap(({ parts }) => parts),
        );
  if (added.length > 0) {
    blocks.push(
      new PartBlock(
        virtualHostsField,
        added.map((host) => new Encodable(VirtualHostSchema, host)),
      ),
    );
  }
  return { rest, blocks };
}

/** A virtual host that was patched: what it is called is known when it is encoded as well. */
class PatchedHost extends Encodable {
  readonly name: string;
  /** The very list of the host before, if it has the same. */
  readonly domains: readonly string[];

  constructor(part: VirtualHostPart, before: VirtualHost, after: VirtualHost) {
    super(VirtualHostSchema, after);
    this.name = after.name;
    this.domains = after.domains === before.domains ? part.domains : after.domains;
  }
}

type HostPart = VirtualHostPart | PatchedHost;

interface PatchedBlock {
  readonly before: Block;
  readonly after: PartBlock<HostPart>;
  readonly changes: ReadonlyMap<
    VirtualHostPart,
    { readonly held: readonly HeldPatch[]; readonly after: HostPart | undefined }
  >;
  /** No patch gives a host another name or other domains, which may be in the way of hosts in other blocks. */
  readonly isCalledAsBefore: boolean;
}

function patchedBlock(before: Block, byHost: KeyedPatches, patches: PatchSet): PatchedBlock {
  const changes: [VirtualHostPart, { held: readonly HeldPatch[]; after: HostPart | undefined }][] = [];
  for (const part of before.parts) {
    const held = byHost.for(hostKeys(part)).filter((one) => isHostMet(one, part));
    if (held.length === 0) continue;
    const after = patchedPart(part, held, patches);
    if (after !== part) changes.push([part, { held, after }]);
  }
  const byPart = new Map(changes);
  return {
    before,
    after: blockAfter(before, (part) => (byPart.has(part) ? byPart.get(part)!.after : part)),
    changes: byPart,
    isCalledAsBefore: changes.every(([part, { after }]) => after === undefined || isCalledAs(part, after)),
  };
}

/** Once for all configurations that have the host; undefined: it is removed. */
function patchedPart(part: VirtualHostPart, held: readonly HeldPatch[], patches: PatchSet): HostPart | undefined {
  const key = held.map(({ index }) => index).join();
  return kept(part, patches, key, () => {
    const { message } = part;
    const after = patchedHost(message, held);
    return after && (after === message ? part : new PatchedHost(part, message, after));
  });
}

/** The blocks without those changes that would give two hosts one name or one domain. */
function fittingBlocks(
  patched: readonly PatchedBlock[],
  all: readonly VirtualHostPart[],
): readonly PartBlock<HostPart>[] {
  const unique = new UniqueHosts<HostPart>(all);
  return patched.map(({ before, changes }) =>
    blockAfter(before, (part) => {
      const change = changes.get(part);
      return change === undefined ? part : unique.changed(part, change.after, change.held);
    }),
  );
}

/** The very same block when nothing in it is another. */
function blockAfter(before: Block, change: (part: VirtualHostPart) => HostPart | undefined): PartBlock<HostPart> {
  const parts = before.parts.flatMap((part) => change(part) ?? []);
  return sameItems<HostPart>(parts, before.parts) ? before : new PartBlock(virtualHostsField, parts);
}

/** Routes that lie in a listener of a sidecar. */
export function patchedInlineRoutes(routes: RouteConfiguration, patches: readonly HeldPatch[]): RouteConfiguration {
  const [, port] = /^inbound\|(\d+)\|/.exec(routes.name) ?? [];
  const facts: RouteFacts = { name: routes.name, ports: new Set(port === undefined ? [] : [Number(port)]) };
  const met = patches.filter((held) => isConfigurationMet(held, facts));
  return met.length === 0 ? routes : patchedConfiguration(routes, met);
}

/** Patches of a route configuration by what they change. @param hosts those that it has */
function byTarget(met: readonly HeldPatch[], hosts: () => readonly NamedHost[]) {
  const isAddition = ({ patch }: HeldPatch): boolean => patch.applyTo === 'VIRTUAL_HOST' && patch.operation === 'ADD';
  const ofHosts = met.filter(({ patch }) => patch.applyTo !== 'ROUTE_CONFIGURATION');
  return {
    ofWhole: met.filter(
      (held) =>
        held.patch.applyTo === 'ROUTE_CONFIGURATION' &&
        (held.patch.match.routeConfiguration?.vhost === undefined || hosts().some((host) => isHostMet(held, host))),
    ),
    changing: ofHosts.filter((held) => !isAddition(held)),
    adding: ofHosts.filter(isAddition),
  };
}

function patchedConfiguration(routes: RouteConfiguration, met: readonly HeldPatch[]): RouteConfiguration {
  const { ofWhole, changing, adding } = byTarget(met, () => routes.virtualHosts);
  const whole = ofWhole.reduce(withMerged, routes);
  const unique = new UniqueHosts(whole.virtualHosts);
  const byHost = new KeyedPatches(changing, wantedHost);
  const hosts = whole.virtualHosts.flatMap((host) => {
    const held = byHost.for(hostKeys(host)).filter((one) => isHostMet(one, host));
    if (held.length === 0) return [host];
    return unique.changed(host, patchedHost(host, held), held) ?? [];
  });
  hosts.push(...addedHosts(adding, hosts));
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
  /** The virtual hosts that patches are found by; absent where they are found otherwise. */
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
