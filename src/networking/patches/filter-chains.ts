import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
  FilterSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import type { ActivePatch } from './active-patch.ts';
import { applyPatches, mergeWithPatch } from './apply-patches.ts';
import { hasFilterName, isPackedAs, packedSettingsOf, patchedFilters } from './filters.ts';
import { httpConnectionManagerType, patchedManager } from './http-connection-manager.ts';
import { shallowCopy } from './merge-messages.ts';
import { isMerge } from './patch-set.ts';
import { patchedInlineRoutes } from './routes.ts';

export interface ChainPatches {
  readonly chains: readonly ActivePatch[];
  readonly networkFilters: readonly ActivePatch[];
  readonly httpFilters: readonly ActivePatch[];
  readonly routes: readonly ActivePatch[];
  readonly isVirtual: boolean;
}

export function patchedChain(chain: FilterChain, patches: ChainPatches): FilterChain | undefined {
  const matchesThisChain = (activePatch: ActivePatch): boolean => matchesChain(activePatch, chain, patches.isVirtual);
  const matchingPatches = {
    chains: patches.chains.filter(matchesThisChain),
    networkFilters: patches.networkFilters.filter(matchesThisChain),
    httpFilters: patches.httpFilters.filter(matchesThisChain),
  };
  const changedChain = applyPatches(chain, matchingPatches.chains, changeChain);
  if (changedChain === undefined) return undefined;
  const filters = patchedFilters<Filter>(changedChain.filters, matchingPatches.networkFilters, {
    schema: FilterSchema,
    filterName: ({ patch }) => patch.match.listener?.filterChain?.filter?.name || undefined,
    isLast: (filter) => lastTypes.some((type) => isPackedAs(packedSettingsOf(filter), type)),
  }).map((filter) => patchManager(filter, matchingPatches.httpFilters, patches.routes));
  if (sameItems(filters, changedChain.filters)) return changedChain;
  const result: FilterChain = shallowCopy(changedChain);
  result.filters = filters;
  const origins = [...matchingPatches.networkFilters, ...matchingPatches.httpFilters].map(({ origin }) => origin);
  return withOrigins(result, [...originsOf(changedChain), ...origins]);
}

/** Types of terminal filters: generated ones, and common replacements by users. */
const lastTypes = [
  httpConnectionManagerType,
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
  'envoy.extensions.filters.network.redis_proxy.v3.RedisProxy',
];

function changeChain(chain: FilterChain, activePatch: ActivePatch): FilterChain | undefined {
  return isMerge(activePatch) ? mergeWithPatch(FilterChainSchema, chain, activePatch) : undefined;
}

function patchManager(filter: Filter, httpFilters: readonly ActivePatch[], routes: readonly ActivePatch[]): Filter {
  const packedManager = packedSettingsOf(filter);
  if (packedManager === undefined || (httpFilters.length === 0 && routes.length === 0)) return filter;
  const value = patchedManager(packedManager, httpFilters, (inline) => patchedInlineRoutes(inline, routes));
  if (value === packedManager) return filter;
  const result: Filter = shallowCopy(filter);
  result.configType = { case: 'typedConfig', value };
  return result;
}

/** Requires all given fields to match, except the filter name of a NETWORK_FILTER patch, which is matched in the filter list. */
export function matchesChain({ patch }: ActivePatch, chain: FilterChain, isVirtual: boolean): boolean {
  const { portNumber, filterChain: chainMatch = {} } = patch.match.listener ?? {};
  const { filterChainMatch: match, name, filters } = chain;
  const { transportProtocol, applicationProtocols, sni, destinationPort, filter } = chainMatch;
  if (isVirtual && portNumber !== undefined && match?.destinationPort !== portNumber) return false;
  if (destinationPort !== undefined && match?.destinationPort !== destinationPort) return false;
  if (isNonEmpty(chainMatch.name) && chainMatch.name !== name) return false;
  if (isNonEmpty(sni) && !match?.serverNames.includes(sni)) return false;
  if (isNonEmpty(transportProtocol) && match?.transportProtocol !== transportProtocol) return false;
  if (isNonEmpty(applicationProtocols)) {
    const allProtocols = applicationProtocols.split(',').map((protocol) => protocol.trim());
    if (!allProtocols.every((protocol) => match?.applicationProtocols.includes(protocol))) return false;
  }
  if (patch.applyTo === 'NETWORK_FILTER' || !isNonEmpty(filter?.name)) return true;
  return filters.some((chainFilter) => hasFilterName(chainFilter.name, filter.name!));
}

function isNonEmpty(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}
