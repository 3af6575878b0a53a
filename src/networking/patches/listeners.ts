/** Patches of listeners, and of what lies in them (spec/discovery.md §8.9). */
import { TrafficDirection } from '../../gen/envoy/config/core/v3/base_pb.ts';
import {
  type FilterChain,
  FilterChainSchema,
  type ListenerFilter,
  ListenerFilterSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { type Listener, ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { configKeyOf } from '../../model/config/config.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import { Resource } from '../messages/resource.ts';
import { virtualInboundListener } from '../traffic/resource-names.ts';
import { withAdded } from './additions.ts';
import { withBindingShown } from './binding.ts';
import { type ChainPatches, isChainMet, patchedChain } from './filter-chains.ts';
import { patchedFilters } from './filters.ts';
import type { HeldPatch } from './held-patch.ts';
import { inTurn, mergedWith } from './in-turn.ts';
import { kept } from './kept.ts';
import { shallowCopy } from './merge-messages.ts';
import { isForPlace, isMerge, type PatchSet, type PlaceContext, routePatches, valueAs } from './patch-set.ts';
import { attempt } from './status.ts';

export function patchedListeners(listeners: Resource[], patches: PatchSet): Resource[] {
  const changing: readonly HeldPatch[] = [
    ...patches.of('LISTENER').filter(({ patch }) => patch.operation !== 'ADD'),
    ...patches.of('LISTENER_FILTER'),
    ...patches.of('FILTER_CHAIN'),
    ...patches.of('NETWORK_FILTER'),
    ...patches.of('HTTP_FILTER'),
    // Routes of inbound requests lie in the listener; all others are resources of their own.
    ...routePatches(patches),
  ];
  const result =
    changing.length === 0 ? listeners : listeners.flatMap((one) => patchedListener(one, changing, patches));
  return withAdded(
    result,
    patches.of('LISTENER').filter(({ patch }) => patch.operation === 'ADD'),
    { schema: ListenerSchema, what: 'a listener', completed: withBindingShown },
  );
}

function patchedListener(listener: Resource, changing: readonly HeldPatch[], patches: PatchSet): readonly Resource[] {
  const facts = factsOf(listener, patches);
  const met = changing.filter((held) => meets(held, facts));
  if (met.length === 0) return [listener];
  return kept(listener, patches, '', () => {
    const message = listener.message as Listener;
    const changed = withPatches(message, met, facts);
    if (changed === message) return [listener];
    if (changed === undefined) return [];
    const dependsOn = [...listener.dependsOn, ...met.map(({ filter }) => configKeyOf(filter))];
    return [new Resource(listener.name, listener.schema, withBindingShown(changed), dependsOn)];
  });
}

/** Undefined for one that is removed, or of which nothing is left that could take a connection. */
function withPatches(listener: Listener, met: readonly HeldPatch[], facts: ListenerFacts): Listener | undefined {
  const byTarget = Map.groupBy(met, ({ patch }) => patch.applyTo);
  const of = (target: HeldPatch['patch']['applyTo']): readonly HeldPatch[] => byTarget.get(target) ?? [];
  const isMet = (held: HeldPatch): boolean => hasChainFor(held, chainsOf(listener), facts);
  const whole = inTurn(listener, of('LISTENER').filter(isMet), changedWhole);
  if (whole === undefined) return undefined;
  const listenerFilters = patchedFilters<ListenerFilter>(whole.listenerFilters, of('LISTENER_FILTER').filter(isMet), {
    schema: ListenerFilterSchema,
    wanted: ({ patch }) => patch.match.listener?.listenerFilter || undefined,
  });
  const chainPatches: ChainPatches = {
    chains: of('FILTER_CHAIN').filter(({ patch }) => patch.operation !== 'ADD'),
    networkFilters: of('NETWORK_FILTER'),
    httpFilters: of('HTTP_FILTER'),
    routes: met.filter(({ patch }) => routeTargets.has(patch.applyTo)),
    isVirtual: facts.isVirtualInbound,
  };
  const added = of('FILTER_CHAIN')
    .filter(({ patch }) => patch.operation === 'ADD')
    .flatMap((held) =>
      attempt<FilterChain[]>(held, [], () => [withOrigins(valueAs(FilterChainSchema, held), [held.origin])]),
    );
  const filterChains = [...whole.filterChains.flatMap((chain) => patchedChain(chain, chainPatches) ?? []), ...added];
  const defaultFilterChain = whole.defaultFilterChain && patchedChain(whole.defaultFilterChain, chainPatches);
  const same =
    listenerFilters === whole.listenerFilters &&
    sameItems(filterChains, whole.filterChains) &&
    defaultFilterChain === whole.defaultFilterChain;
  if (same) return whole;
  // Envoy refuses a listener without a chain.
  if (filterChains.length === 0 && defaultFilterChain === undefined) return undefined;
  const result: Listener = shallowCopy(whole);
  result.listenerFilters = [...listenerFilters];
  result.filterChains = filterChains;
  if (defaultFilterChain === undefined) delete result.defaultFilterChain;
  else result.defaultFilterChain = defaultFilterChain;
  return withOrigins(result, originsOf(whole));
}

const routeTargets: ReadonlySet<string> = new Set(['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE']);

/** The listener with a patch merged into it as a whole; its name stays. */
function changedWhole(listener: Listener, held: HeldPatch): Listener | undefined {
  if (!isMerge(held)) return undefined;
  const result = mergedWith(ListenerSchema, listener, held);
  result.name = listener.name;
  return result;
}

/** What of a listener decides which patches it may meet: looked up while its message is there, as it is not for long. */
interface ListenerFacts {
  readonly context: PlaceContext;
  readonly name: string;
  /** Undefined for a unix socket. */
  readonly port: number | undefined;
  /** The listener takes connections to all ports, and its chains say which. */
  readonly isVirtualInbound: boolean;
}

const known = new WeakMap<Resource, ListenerFacts>();

function factsOf(resource: Resource, { nodeType }: PatchSet): ListenerFacts {
  let facts = known.get(resource);
  if (facts === undefined) {
    const { name, trafficDirection, address } = resource.message as Listener;
    const socket = address?.address.case === 'socketAddress' ? address.address.value : undefined;
    const isInbound = trafficDirection === TrafficDirection.INBOUND;
    facts = {
      context: nodeType === 'router' ? 'GATEWAY' : isInbound ? 'SIDECAR_INBOUND' : 'SIDECAR_OUTBOUND',
      name,
      port: socket?.portSpecifier.case === 'portValue' ? socket.portSpecifier.value : undefined,
      isVirtualInbound: name === virtualInboundListener,
    };
    known.set(resource, facts);
  }
  return facts;
}

function meets(held: HeldPatch, { context, name, port, isVirtualInbound }: ListenerFacts): boolean {
  if (!isForPlace(held, context)) return false;
  if (routeTargets.has(held.patch.applyTo)) return context === 'SIDECAR_INBOUND';
  const wanted = held.patch.match.listener ?? {};
  if (wanted.name !== undefined && wanted.name !== '' && wanted.name !== name) return false;
  return wanted.portNumber === undefined || isVirtualInbound || wanted.portNumber === port;
}

function chainsOf({ filterChains, defaultFilterChain }: Listener): readonly FilterChain[] {
  return defaultFilterChain === undefined ? filterChains : [...filterChains, defaultFilterChain];
}

/** A patch of the whole listener that speaks of a chain, or of a port of many, is for a listener that has such a one. */
function hasChainFor(held: HeldPatch, chains: readonly FilterChain[], { isVirtualInbound }: ListenerFacts): boolean {
  return chains.length === 0 || chains.some((chain) => isChainMet(held, chain, isVirtualInbound));
}
