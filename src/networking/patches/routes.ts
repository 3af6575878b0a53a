/** Patches route configurations, both requested by name and inline. */

import { type VirtualHost, VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { configKeyOf } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { mergeGateways } from '../gateway/merge-gateways.ts';
import { PartBlock } from '../messages/part-block.ts';
import { Encodable, EnvoyResource, ResourceOfParts } from '../messages/resource.ts';
import { virtualHostsField } from '../routes/plan/planned-routes.ts';
import type { VirtualHostPart } from '../routes/plan/virtual-host-part.ts';
import type { ActivePatch } from './active-patch.ts';
import { listMergeOf } from './apply-patches.ts';
import { firstConditionKey, KeyedPatches } from './keyed-patches.ts';
import { mergeMessages, shallowCopy } from './merge-messages.ts';
import { memoizeByPatchSet } from './once-per-patch-set.ts';
import { type ListenerContext, matchesPlace, messageOfPatch, type PatchSet, routePatches } from './patch-set.ts';
import { attemptPatch } from './status.ts';
import {
  addedHosts,
  hasSameNames,
  hostKeys,
  matchedHostName,
  matchesHost,
  type NamedHost,
  patchedHost,
  UniqueHosts,
} from './virtual-hosts.ts';

export function patchedRoutes(
  configurations: EnvoyResource[],
  patches: PatchSet,
  shape: ProxyShape,
  push: PushContext,
): EnvoyResource[] {
  const listenerContext = shape.type === 'router' ? 'GATEWAY' : 'SIDECAR_OUTBOUND';
  const candidatePatches = routePatchesFor(patches, listenerContext);
  if (candidatePatches === undefined) return configurations;
  const factsOf = routeFactsReaderFor(shape, push);
  return configurations.map((resource) => {
    const routeFacts = factsOf(resource);
    const matchingPatches = candidatePatches
      .patchesFor(keysOf(routeFacts))
      .filter((activePatch) => matchesConfiguration(activePatch, routeFacts));
    if (matchingPatches.length === 0) return resource;
    return memoizeByPatchSet(resource, patches, matchingPatches.map(({ index }) => index).join(), () =>
      patchedResource(resource, matchingPatches, patches),
    );
  });
}

const routePatchesByContext = new WeakMap<PatchSet, Map<ListenerContext, KeyedPatches | undefined>>();

function routePatchesFor(patches: PatchSet, listenerContext: ListenerContext): KeyedPatches | undefined {
  const patchesByContext = routePatchesByContext.get(patches) ?? new Map<ListenerContext, KeyedPatches | undefined>();
  routePatchesByContext.set(patches, patchesByContext);
  if (!patchesByContext.has(listenerContext)) {
    const candidatePatches = routePatches(patches).filter((activePatch) => matchesPlace(activePatch, listenerContext));
    patchesByContext.set(
      listenerContext,
      candidatePatches.length === 0
        ? undefined
        : new KeyedPatches(candidatePatches, (active) => keyOf(active, listenerContext)),
    );
  }
  return patchesByContext.get(listenerContext);
}

/** Virtual hosts are decoded only in gateway configurations, so other look-ups do not use the host. */
function keyOf({ patch }: ActivePatch, listenerContext: ListenerContext): string | undefined {
  const { name, portName, gateway, vhost } = patch.match.routeConfiguration ?? {};
  const isNewHost = patch.applyTo === 'VIRTUAL_HOST' && patch.operation === 'ADD';
  const host = listenerContext === 'GATEWAY' && !isNewHost ? vhost : undefined;
  return firstConditionKey({ name, portName, gateway, vhost: host?.name, domain: host?.domainName });
}

function* keysOf({ name, portNames = noNames, gateways = noNames, hosts }: RouteFacts): Iterable<string> {
  yield `name ${name}`;
  for (const portName of portNames) yield `portName ${portName}`;
  for (const gateway of gateways) yield `gateway ${gateway}`;
  for (const host of hosts?.() ?? []) yield* hostKeys(host);
}

function patchedResource(
  resource: EnvoyResource,
  matchingPatches: readonly ActivePatch[],
  patches: PatchSet,
): EnvoyResource {
  const dependsOn = () => [...resource.dependsOn, ...matchingPatches.map(({ filter }) => configKeyOf(filter))];
  const { name, schema } = resource;
  if (resource instanceof ResourceOfParts) {
    const unpatchedConfiguration = resource.rest as RouteConfiguration;
    const patchedBlocks = patchedOfParts(
      unpatchedConfiguration,
      resource.blocks as readonly Block[],
      matchingPatches,
      patches,
    );
    if (patchedBlocks?.rest === unpatchedConfiguration && sameItems(patchedBlocks.blocks, resource.blocks))
      return resource;
    if (patchedBlocks !== undefined) {
      return new ResourceOfParts({ name, schema, message: patchedBlocks.rest, dependsOn }, patchedBlocks.blocks);
    }
  }
  const message = resource.message as RouteConfiguration;
  const changedConfiguration = patchedConfiguration(message, matchingPatches);
  return changedConfiguration === message ? resource : new EnvoyResource(name, schema, changedConfiguration, dependsOn);
}

type Block = PartBlock<VirtualHostPart>;

/**
 * Decodes only virtual hosts that patches match, and patches each once for all configurations that contain it. Returns `undefined` if a patch adds
 * virtual hosts, which requires decoding all.
 */
function patchedOfParts(
  configuration: RouteConfiguration,
  unpatchedBlocks: readonly Block[],
  matchingPatches: readonly ActivePatch[],
  patches: PatchSet,
): { readonly rest: RouteConfiguration; readonly blocks: readonly PartBlock[] } | undefined {
  const hostParts = (): readonly VirtualHostPart[] => unpatchedBlocks.flatMap(({ parts }) => parts);
  const { ofWhole, changing, adding } = groupByTarget(matchingPatches, hostParts);
  const mergedConfiguration = ofWhole.reduce(withMerged, configuration);
  if (mergedConfiguration.virtualHosts.length > 0) return undefined;
  const patchesByHost = new KeyedPatches(changing, matchedHostName);
  const key = `block ${changing.map(({ index }) => index).join()}`;
  const patchedBlocks = unpatchedBlocks.map((block) =>
    memoizeByPatchSet(block, patches, key, () => patchedBlock(block, patchesByHost, patches)),
  );
  const areNamesUnchanged = patchedBlocks.every(({ hasSameNames }) => hasSameNames);
  const uniqueBlocks = areNamesUnchanged
    ? patchedBlocks.map(({ blockPatched }) => blockPatched)
    : withoutConflictingChanges(patchedBlocks, hostParts());
  const blocks: PartBlock[] = uniqueBlocks.filter(({ parts }) => parts.length > 0);
  const newHosts =
    adding.length === 0
      ? []
      : addedHosts(
          adding,
          uniqueBlocks.flatMap(({ parts }) => parts),
        );
  if (newHosts.length > 0) {
    blocks.push(
      new PartBlock(
        virtualHostsField,
        newHosts.map((host) => new Encodable(VirtualHostSchema, host)),
      ),
    );
  }
  return { rest: mergedConfiguration, blocks };
}

class PatchedHost extends Encodable {
  readonly name: string;
  /** The unpatched host's list if no domain changed. */
  readonly domains: readonly string[];

  constructor(hostPart: VirtualHostPart, unpatchedHost: VirtualHost, patchedMessage: VirtualHost) {
    super(VirtualHostSchema, patchedMessage);
    this.name = patchedMessage.name;
    this.domains = patchedMessage.domains === unpatchedHost.domains ? hostPart.domains : patchedMessage.domains;
  }
}

type HostPart = VirtualHostPart | PatchedHost;

interface PatchedBlock {
  readonly unpatchedBlock: Block;
  readonly blockPatched: PartBlock<HostPart>;
  readonly changes: ReadonlyMap<
    VirtualHostPart,
    { readonly active: readonly ActivePatch[]; readonly after: HostPart | undefined }
  >;
  /** Whether name and domains are unchanged. They then cannot conflict with other hosts. */
  readonly hasSameNames: boolean;
}

function patchedBlock(unpatchedBlock: Block, patchesByHost: KeyedPatches, patches: PatchSet): PatchedBlock {
  const changes: [VirtualHostPart, { active: readonly ActivePatch[]; after: HostPart | undefined }][] = [];
  for (const hostPart of unpatchedBlock.parts) {
    const active = patchesByHost.patchesFor(hostKeys(hostPart)).filter((candidate) => matchesHost(candidate, hostPart));
    if (active.length === 0) continue;
    const nextPart = patchedPart(hostPart, active, patches);
    if (nextPart !== hostPart) changes.push([hostPart, { active, after: nextPart }]);
  }
  const changesByPart = new Map(changes);
  return {
    unpatchedBlock,
    blockPatched: changedBlockOf(unpatchedBlock, (hostPart) =>
      changesByPart.has(hostPart) ? changesByPart.get(hostPart)!.after : hostPart,
    ),
    changes: changesByPart,
    hasSameNames: changes.every(([hostPart, { after }]) => after === undefined || hasSameNames(hostPart, after)),
  };
}

/** Returns `undefined` if a patch removes the host. */
function patchedPart(
  hostPart: VirtualHostPart,
  activePatches: readonly ActivePatch[],
  patches: PatchSet,
): HostPart | undefined {
  const key = activePatches.map(({ index }) => index).join();
  return memoizeByPatchSet(hostPart, patches, key, () => {
    const { message } = hostPart;
    const nextHost = patchedHost(message, activePatches);
    return nextHost && (nextHost === message ? hostPart : new PatchedHost(hostPart, message, nextHost));
  });
}

/** Reverts changes that would duplicate a name or domain. */
function withoutConflictingChanges(
  patchedBlocks: readonly PatchedBlock[],
  hostParts: readonly VirtualHostPart[],
): readonly PartBlock<HostPart>[] {
  const uniqueHosts = new UniqueHosts<HostPart>(hostParts);
  return patchedBlocks.map(({ unpatchedBlock, changes }) =>
    changedBlockOf(unpatchedBlock, (hostPart) => {
      const change = changes.get(hostPart);
      return change === undefined ? hostPart : uniqueHosts.applyChange(hostPart, change.after, change.active);
    }),
  );
}

function changedBlockOf(
  unpatchedBlock: Block,
  change: (part: VirtualHostPart) => HostPart | undefined,
): PartBlock<HostPart> {
  const changedParts = unpatchedBlock.parts.flatMap((hostPart) => change(hostPart) ?? []);
  return sameItems<HostPart>(changedParts, unpatchedBlock.parts)
    ? unpatchedBlock
    : new PartBlock(virtualHostsField, changedParts);
}

export function patchedInlineRoutes(routes: RouteConfiguration, patches: readonly ActivePatch[]): RouteConfiguration {
  const [, port] = /^inbound\|(\d+)\|/.exec(routes.name) ?? [];
  const routeFacts: RouteFacts = { name: routes.name, ports: new Set(port === undefined ? [] : [Number(port)]) };
  const matchingPatches = patches.filter((activePatch) => matchesConfiguration(activePatch, routeFacts));
  return matchingPatches.length === 0 ? routes : patchedConfiguration(routes, matchingPatches);
}

function groupByTarget(matchingPatches: readonly ActivePatch[], hosts: () => readonly NamedHost[]) {
  const isHostAddition = ({ patch }: ActivePatch): boolean =>
    patch.applyTo === 'VIRTUAL_HOST' && patch.operation === 'ADD';
  const hostPatches = matchingPatches.filter(({ patch }) => patch.applyTo !== 'ROUTE_CONFIGURATION');
  return {
    ofWhole: matchingPatches.filter(
      (activePatch) =>
        activePatch.patch.applyTo === 'ROUTE_CONFIGURATION' &&
        (activePatch.patch.match.routeConfiguration?.vhost === undefined ||
          hosts().some((host) => matchesHost(activePatch, host))),
    ),
    changing: hostPatches.filter((active) => !isHostAddition(active)),
    adding: hostPatches.filter(isHostAddition),
  };
}

function patchedConfiguration(routes: RouteConfiguration, matchingPatches: readonly ActivePatch[]): RouteConfiguration {
  const { ofWhole, changing, adding } = groupByTarget(matchingPatches, () => routes.virtualHosts);
  const mergedConfiguration = ofWhole.reduce(withMerged, routes);
  const uniqueHosts = new UniqueHosts(mergedConfiguration.virtualHosts);
  const patchesByHost = new KeyedPatches(changing, matchedHostName);
  const hosts = mergedConfiguration.virtualHosts.flatMap((host) => {
    const activePatches = patchesByHost.patchesFor(hostKeys(host)).filter((candidate) => matchesHost(candidate, host));
    if (activePatches.length === 0) return [host];
    return uniqueHosts.applyChange(host, patchedHost(host, activePatches), activePatches) ?? [];
  });
  hosts.push(...addedHosts(adding, hosts));
  if (sameItems(hosts, mergedConfiguration.virtualHosts)) return mergedConfiguration;
  const result: RouteConfiguration = shallowCopy(mergedConfiguration);
  result.virtualHosts = hosts;
  return result;
}

/** Keeps the name, because listeners refer to it. */
function withMerged(routes: RouteConfiguration, activePatch: ActivePatch): RouteConfiguration {
  return attemptPatch(activePatch, routes, () => {
    const result = mergeMessages(
      RouteConfigurationSchema,
      routes,
      messageOfPatch(RouteConfigurationSchema, activePatch),
      listMergeOf(activePatch),
    );
    result.name = routes.name;
    return result;
  });
}

interface RouteFacts {
  readonly name: string;
  readonly ports: ReadonlySet<number>;
  readonly portNames?: ReadonlySet<string>;
  /** In the form `NAMESPACE/NAME`. */
  readonly gateways?: ReadonlySet<string>;
  readonly hosts?: () => readonly VirtualHost[];
}

const noNames: ReadonlySet<string> = new Set();

function routeFactsReaderFor(shape: ProxyShape, push: PushContext): (resource: EnvoyResource) => RouteFacts {
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
      // Includes the server's port and the proxy's port.
      ports: new Set(servers.flatMap(({ server, port }) => [server.port.number, port])),
      portNames: new Set(servers.map(({ server }) => server.port.name)),
      gateways: new Set(servers.map(({ gateway }) => `${gateway.namespace}/${gateway.name}`)),
      hosts: () => (resource.message as RouteConfiguration).virtualHosts,
    };
  };
}

function matchesConfiguration(
  { patch }: ActivePatch,
  { name, ports, portNames = noNames, gateways = noNames }: RouteFacts,
): boolean {
  const configurationMatch = patch.match.routeConfiguration ?? {};
  if (configurationMatch.name !== undefined && configurationMatch.name !== '' && configurationMatch.name !== name)
    return false;
  if (configurationMatch.portNumber !== undefined && !ports.has(configurationMatch.portNumber)) return false;
  if (
    configurationMatch.portName !== undefined &&
    configurationMatch.portName !== '' &&
    !portNames.has(configurationMatch.portName)
  )
    return false;
  return (
    configurationMatch.gateway === undefined ||
    configurationMatch.gateway === '' ||
    gateways.has(configurationMatch.gateway)
  );
}
