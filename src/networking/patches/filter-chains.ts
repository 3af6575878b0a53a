/** Patches of filter chains, and of the filters in them (spec/discovery.md §8.9). */

import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
  FilterSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import { isCalled, isPacked, packedIn, patchedFilters } from './filters.ts';
import type { HeldPatch } from './held-patch.ts';
import { httpConnectionManagerType, patchedManager } from './http-connection-manager.ts';
import { inTurn, mergedWith } from './in-turn.ts';
import { shallowCopy } from './merge-messages.ts';
import { isMerge } from './patch-set.ts';
import { patchedInlineRoutes } from './routes.ts';

/** Patches that the listener of the chains meets. */
export interface ChainPatches {
  readonly chains: readonly HeldPatch[];
  readonly networkFilters: readonly HeldPatch[];
  readonly httpFilters: readonly HeldPatch[];
  readonly routes: readonly HeldPatch[];
  /** The listener takes connections to all ports. */
  readonly isVirtual: boolean;
}

/** The very same chain when nothing in it is another; undefined for one that is removed. */
export function patchedChain(chain: FilterChain, patches: ChainPatches): FilterChain | undefined {
  const isMet = (held: HeldPatch): boolean => isChainMet(held, chain, patches.isVirtual);
  const met = {
    chains: patches.chains.filter(isMet),
    networkFilters: patches.networkFilters.filter(isMet),
    httpFilters: patches.httpFilters.filter(isMet),
  };
  const whole = inTurn(chain, met.chains, changedWhole);
  if (whole === undefined) return undefined;
  const filters = patchedFilters<Filter>(whole.filters, met.networkFilters, {
    schema: FilterSchema,
    wanted: ({ patch }) => patch.match.listener?.filterChain?.filter?.name || undefined,
    isLast: (filter) => lastTypes.some((type) => isPacked(packedIn(filter), type)),
  }).map((filter) => withinManager(filter, met.httpFilters, patches.routes));
  if (sameItems(filters, whole.filters)) return whole;
  const result: FilterChain = shallowCopy(whole);
  result.filters = filters;
  const origins = [...met.networkFilters, ...met.httpFilters].map(({ origin }) => origin);
  return withOrigins(result, [...originsOf(whole), ...origins]);
}

/** Filters that end a chain: those that generators make, and what people may put in their place. */
const lastTypes = [
  httpConnectionManagerType,
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
  'envoy.extensions.filters.network.redis_proxy.v3.RedisProxy',
];

function changedWhole(chain: FilterChain, held: HeldPatch): FilterChain | undefined {
  return isMerge(held) ? mergedWith(FilterChainSchema, chain, held) : undefined;
}

function withinManager(filter: Filter, httpFilters: readonly HeldPatch[], routes: readonly HeldPatch[]): Filter {
  const packed = packedIn(filter);
  if (packed === undefined || (httpFilters.length === 0 && routes.length === 0)) return filter;
  const value = patchedManager(packed, httpFilters, (inline) => patchedInlineRoutes(inline, routes));
  if (value === packed) return filter;
  const result: Filter = shallowCopy(filter);
  result.configType = { case: 'typedConfig', value };
  return result;
}

/** What is given must be so. The filter of a patch of network filters is looked for in their list. */
export function isChainMet({ patch }: HeldPatch, chain: FilterChain, isVirtual: boolean): boolean {
  const { portNumber, filterChain: wanted = {} } = patch.match.listener ?? {};
  const { filterChainMatch: match, name, filters } = chain;
  const { transportProtocol, applicationProtocols, sni, destinationPort, filter } = wanted;
  if (isVirtual && portNumber !== undefined && match?.destinationPort !== portNumber) return false;
  if (destinationPort !== undefined && match?.destinationPort !== destinationPort) return false;
  if (isGiven(wanted.name) && wanted.name !== name) return false;
  if (isGiven(sni) && !match?.serverNames.includes(sni)) return false;
  if (isGiven(transportProtocol) && match?.transportProtocol !== transportProtocol) return false;
  if (isGiven(applicationProtocols)) {
    const all = applicationProtocols.split(',').map((protocol) => protocol.trim());
    if (!all.every((protocol) => match?.applicationProtocols.includes(protocol))) return false;
  }
  if (patch.applyTo === 'NETWORK_FILTER' || !isGiven(filter?.name)) return true;
  return filters.some((one) => isCalled(one.name, filter.name!));
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}
