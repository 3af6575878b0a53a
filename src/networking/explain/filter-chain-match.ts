/**
 * Selects the filter chain of a connection (Envoy's docs: config.listener.v3.FilterChainMatch). Each criterion, in a
 * fixed order, keeps only the chains with the most specific match. Envoy never backtracks.
 */

import { BlockList, isIP } from 'node:net';
import type { CidrRange } from '../../gen/envoy/config/core/v3/address_pb.ts';
import {
  type FilterChain,
  FilterChainMatch_ConnectionSourceType as SourceType,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import type { InspectedConnection } from './inspected.ts';
import type { Question } from './question.ts';

type Match = NonNullable<FilterChain['filterChainMatch']>;

/** Returns `undefined` if Envoy closes the connection. */
export function filterChainOf(
  listener: Listener,
  question: Question,
  inspectedConnection: InspectedConnection,
): FilterChain | undefined {
  const { destination, source } = question;
  let remainingChains: readonly FilterChain[] = listener.filterChains;
  remainingChains = chooseChains(remainingChains, ({ destinationPort }) => valueList(destinationPort), [
    String(destination.port),
  ]);
  remainingChains = chooseRange(remainingChains, ({ prefixRanges }) => prefixRanges, destination.address);
  remainingChains = chooseChains(
    remainingChains,
    ({ serverNames }) => serverNames.map((name) => name.replace(/^\*/, '')),
    suffixes(inspectedConnection),
  );
  remainingChains = chooseChains(remainingChains, ({ transportProtocol }) => valueList(transportProtocol), [
    inspectedConnection.transport,
  ]);
  remainingChains = chooseChains(
    remainingChains,
    ({ applicationProtocols }) => applicationProtocols,
    inspectedConnection.applicationProtocols,
  );
  remainingChains = chooseRange(
    remainingChains,
    ({ directSourcePrefixRanges }) => directSourcePrefixRanges,
    source?.address,
  );
  remainingChains = chooseChains(
    remainingChains,
    ({ sourceType }) => (sourceType === SourceType.ANY ? [] : [String(sourceType)]),
    sourceTypes(question),
  );
  remainingChains = chooseRange(remainingChains, ({ sourcePrefixRanges }) => sourcePrefixRanges, source?.address);
  remainingChains = chooseChains(
    remainingChains,
    ({ sourcePorts }) => sourcePorts.map(String),
    source ? [String(source.port)] : [],
  );
  return remainingChains[0] ?? listener.defaultFilterChain;
}

function valueList(value: string | number | undefined): readonly string[] {
  return value === undefined || value === '' ? [] : [String(value)];
}

function suffixes({ serverName }: InspectedConnection): readonly string[] {
  if (serverName === '') return [];
  const dots = [...serverName.matchAll(/\./g)].map(({ index }) => index).filter((index) => index > 0);
  return [serverName, ...dots.map((index) => serverName.slice(index))];
}

function sourceTypes({ source, destination }: Question): readonly string[] {
  if (source === undefined) return [];
  const isLocalSource = source.address === destination.address || isLoopback(source.address);
  return [String(isLocalSource ? SourceType.SAME_IP_OR_LOOPBACK : SourceType.EXTERNAL)];
}

/** Returns the chains that match the first candidate listed by any chain, otherwise the chains without this criterion. */
function chooseChains(
  chains: readonly FilterChain[],
  valuesOf: (match: Match) => readonly string[],
  expected: readonly string[],
): readonly FilterChain[] {
  for (const value of expected) {
    const matchingChains = chains.filter((chain) => valuesOfChain(chain, valuesOf).includes(value));
    if (matchingChains.length > 0) return matchingChains;
  }
  return chains.filter((chain) => valuesOfChain(chain, valuesOf).length === 0);
}

function valuesOfChain(
  { filterChainMatch }: FilterChain,
  valuesOf: (match: Match) => readonly string[],
): readonly string[] {
  return filterChainMatch === undefined ? [] : valuesOf(filterChainMatch);
}

function chooseRange(
  chains: readonly FilterChain[],
  rangesOf: (match: Match) => readonly CidrRange[],
  address: string | undefined,
): readonly FilterChain[] {
  const widths = chains.map(({ filterChainMatch }): number | undefined => {
    const ranges = filterChainMatch === undefined ? [] : rangesOf(filterChainMatch);
    if (ranges.length === 0) return -1;
    const matchingRanges = ranges.filter((range) => address !== undefined && isInCidr(address, range));
    return matchingRanges.length === 0 ? undefined : Math.max(...matchingRanges.map(({ prefixLen }) => prefixLen ?? 0));
  });
  const bestWidth = Math.max(-1, ...widths.filter((width) => width !== undefined));
  return chains.filter((_, index) => widths[index] === bestWidth);
}

export function isInCidr(address: string, { addressPrefix, prefixLen }: CidrRange): boolean {
  const family = isIP(address);
  if (family === 0 || family !== isIP(addressPrefix)) return false;
  const addressRange = new BlockList();
  const kind = family === 6 ? 'ipv6' : 'ipv4';
  addressRange.addSubnet(addressPrefix, prefixLen ?? 0, kind);
  return addressRange.check(address, kind);
}
