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
import { EnvoyResource } from '../messages/resource.ts';
import { virtualInboundListener } from '../traffic/resource-names.ts';
import type { ActivePatch } from './active-patch.ts';
import { withAdded } from './additions.ts';
import { applyPatches, mergeWithPatch } from './apply-patches.ts';
import { withBindingMark } from './binding.ts';
import { type ChainPatches, matchesChain, patchedChain } from './filter-chains.ts';
import { patchedFilters } from './filters.ts';
import { shallowCopy } from './merge-messages.ts';
import { memoizeByPatchSet } from './once-per-patch-set.ts';
import {
  isMerge,
  type ListenerContext,
  matchesPlace,
  messageOfPatch,
  type PatchSet,
  routePatches,
} from './patch-set.ts';
import { attemptPatch } from './status.ts';

export function patchedListeners(listeners: EnvoyResource[], patches: PatchSet): EnvoyResource[] {
  const changingPatches: readonly ActivePatch[] = [
    ...patches.takePatches('LISTENER').filter(({ patch }) => patch.operation !== 'ADD'),
    ...patches.takePatches('LISTENER_FILTER'),
    ...patches.takePatches('FILTER_CHAIN'),
    ...patches.takePatches('NETWORK_FILTER'),
    ...patches.takePatches('HTTP_FILTER'),
    // Only inbound routes are inline in listeners.
    ...routePatches(patches),
  ];
  const result =
    changingPatches.length === 0
      ? listeners
      : listeners.flatMap((unpatchedListener) => patchedListener(unpatchedListener, changingPatches, patches));
  return withAdded(
    result,
    patches.takePatches('LISTENER').filter(({ patch }) => patch.operation === 'ADD'),
    { schema: ListenerSchema, description: 'a listener', complete: withBindingMark },
  );
}

function patchedListener(
  listener: EnvoyResource,
  changingPatches: readonly ActivePatch[],
  patches: PatchSet,
): readonly EnvoyResource[] {
  const listenerFacts = factsOf(listener, patches);
  const matchingPatches = changingPatches.filter((activePatch) => matchesPatch(activePatch, listenerFacts));
  if (matchingPatches.length === 0) return [listener];
  return memoizeByPatchSet(listener, patches, '', () => {
    const message = listener.message as Listener;
    const changedListener = withPatches(message, matchingPatches, listenerFacts);
    if (changedListener === message) return [listener];
    if (changedListener === undefined) return [];
    const dependsOn = [...listener.dependsOn, ...matchingPatches.map(({ filter }) => configKeyOf(filter))];
    return [new EnvoyResource(listener.name, listener.schema, withBindingMark(changedListener), dependsOn)];
  });
}

/** Returns `undefined` if a patch removes the listener or its last filter chain. */
function withPatches(
  listener: Listener,
  matchingPatches: readonly ActivePatch[],
  listenerFacts: ListenerFacts,
): Listener | undefined {
  const patchesByTarget = Map.groupBy(matchingPatches, ({ patch }) => patch.applyTo);
  const patchesOf = (target: ActivePatch['patch']['applyTo']): readonly ActivePatch[] =>
    patchesByTarget.get(target) ?? [];
  const matchesListener = (activePatch: ActivePatch): boolean =>
    hasChainFor(activePatch, chainsOf(listener), listenerFacts);
  const changedListener = applyPatches(listener, patchesOf('LISTENER').filter(matchesListener), changeListener);
  if (changedListener === undefined) return undefined;
  const listenerFilters = patchedFilters<ListenerFilter>(
    changedListener.listenerFilters,
    patchesOf('LISTENER_FILTER').filter(matchesListener),
    {
      schema: ListenerFilterSchema,
      filterName: ({ patch }) => patch.match.listener?.listenerFilter || undefined,
    },
  );
  const chainPatches: ChainPatches = {
    chains: patchesOf('FILTER_CHAIN').filter(({ patch }) => patch.operation !== 'ADD'),
    networkFilters: patchesOf('NETWORK_FILTER'),
    httpFilters: patchesOf('HTTP_FILTER'),
    routes: matchingPatches.filter(({ patch }) => routeTargets.has(patch.applyTo)),
    isVirtual: listenerFacts.isVirtualInbound,
  };
  const addedChains = patchesOf('FILTER_CHAIN')
    .filter(({ patch }) => patch.operation === 'ADD')
    .flatMap((activePatch) =>
      attemptPatch<FilterChain[]>(activePatch, [], () => [
        withOrigins(messageOfPatch(FilterChainSchema, activePatch), [activePatch.origin]),
      ]),
    );
  const filterChains = [
    ...changedListener.filterChains.flatMap((chain) => patchedChain(chain, chainPatches) ?? []),
    ...addedChains,
  ];
  const defaultFilterChain =
    changedListener.defaultFilterChain && patchedChain(changedListener.defaultFilterChain, chainPatches);
  const sameAddress =
    listenerFilters === changedListener.listenerFilters &&
    sameItems(filterChains, changedListener.filterChains) &&
    defaultFilterChain === changedListener.defaultFilterChain;
  if (sameAddress) return changedListener;
  // Envoy rejects listeners without filter chains.
  if (filterChains.length === 0 && defaultFilterChain === undefined) return undefined;
  const result: Listener = shallowCopy(changedListener);
  result.listenerFilters = [...listenerFilters];
  result.filterChains = filterChains;
  if (defaultFilterChain === undefined) delete result.defaultFilterChain;
  else result.defaultFilterChain = defaultFilterChain;
  return withOrigins(result, originsOf(changedListener));
}

const routeTargets: ReadonlySet<string> = new Set(['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE']);

function changeListener(listener: Listener, activePatch: ActivePatch): Listener | undefined {
  if (!isMerge(activePatch)) return undefined;
  const result = mergeWithPatch(ListenerSchema, listener, activePatch);
  result.name = listener.name;
  return result;
}

/** Listener properties that patches match. Cached, because the decoded message is short-lived. */
interface ListenerFacts {
  readonly context: ListenerContext;
  readonly name: string;
  readonly port: number | undefined;
  /** If true, the listener receives connections to all ports, so its chains match the port. */
  readonly isVirtualInbound: boolean;
}

const cachedFacts = new WeakMap<EnvoyResource, ListenerFacts>();

function factsOf(resource: EnvoyResource, { nodeType }: PatchSet): ListenerFacts {
  let listenerFacts = cachedFacts.get(resource);
  if (listenerFacts === undefined) {
    const { name, trafficDirection, address } = resource.message as Listener;
    const socket = address?.address.case === 'socketAddress' ? address.address.value : undefined;
    const isInbound = trafficDirection === TrafficDirection.INBOUND;
    listenerFacts = {
      context: nodeType === 'router' ? 'GATEWAY' : isInbound ? 'SIDECAR_INBOUND' : 'SIDECAR_OUTBOUND',
      name,
      port: socket?.portSpecifier.case === 'portValue' ? socket.portSpecifier.value : undefined,
      isVirtualInbound: name === virtualInboundListener,
    };
    cachedFacts.set(resource, listenerFacts);
  }
  return listenerFacts;
}

function matchesPatch(activePatch: ActivePatch, { context, name, port, isVirtualInbound }: ListenerFacts): boolean {
  if (!matchesPlace(activePatch, context)) return false;
  if (routeTargets.has(activePatch.patch.applyTo)) return context === 'SIDECAR_INBOUND';
  const listenerMatch = activePatch.patch.match.listener ?? {};
  if (listenerMatch.name !== undefined && listenerMatch.name !== '' && listenerMatch.name !== name) return false;
  return listenerMatch.portNumber === undefined || isVirtualInbound || listenerMatch.portNumber === port;
}

function chainsOf({ filterChains, defaultFilterChain }: Listener): readonly FilterChain[] {
  return defaultFilterChain === undefined ? filterChains : [...filterChains, defaultFilterChain];
}

function hasChainFor(
  activePatch: ActivePatch,
  chains: readonly FilterChain[],
  { isVirtualInbound }: ListenerFacts,
): boolean {
  return chains.length === 0 || chains.some((chain) => matchesChain(activePatch, chain, isVirtualInbound));
}
