/**
 * Restricts filter chain matches to connections that no earlier chain of the listener matches. Envoy expands a match to all combinations of address
 * range and server name, and rejects a listener if two chains contain the same combination.
 */
import { isIPv6 } from 'node:net';
import { cidrRange } from '../messages/address.ts';
import type { ChainMatch } from './filter-chain.ts';

/** The combinations that earlier chains of one listener match. */
export class UsedMatches {
  readonly #usedCombinations = new Set<string>();

  /** Claims and returns the free combinations of a match. The result has several matches if the address ranges have different free server names. */
  reserve(match: ChainMatch): readonly ChainMatch[] {
    const source = match.sourceSubnet === undefined ? '' : subnetText(match.sourceSubnet);
    const matchesByNames = new Map<string, { serverNames: string[]; destinationSubnets: string[] }>();
    let isUnused = true;
    for (const subnet of anyOf(match.destinationSubnets?.filter(isRange))) {
      const freeNames: string[] = [];
      for (const name of anyOf(match.serverNames)) {
        const combination = `${subnetText(subnet)} ${name} ${source}`;
        if (this.#usedCombinations.has(combination)) isUnused = false;
        else {
          this.#usedCombinations.add(combination);
          freeNames.push(name);
        }
      }
      if (freeNames.length === 0) continue;
      const key = freeNames.join();
      const sameNames = matchesByNames.get(key);
      if (sameNames === undefined) matchesByNames.set(key, { serverNames: freeNames, destinationSubnets: [subnet] });
      else sameNames.destinationSubnets.push(subnet);
    }
    if (isUnused) return [match];
    return [...matchesByNames.values()].map(({ serverNames, destinationSubnets }) => ({
      ...match,
      serverNames: serverNames.filter((name) => name !== ''),
      destinationSubnets: destinationSubnets.filter((subnet) => subnet !== ''),
    }));
  }
}

/** Rejects invalid ranges, which match nothing and are omitted. */
function isRange(text: string): boolean {
  return cidrRange(text) !== undefined;
}

function anyOf(list: readonly string[] | undefined): readonly string[] {
  return list?.length ? list : [''];
}

function subnetText(text: string): string {
  const range = cidrRange(text);
  if (range === undefined) return text;
  const { addressPrefix, prefixLen } = range;
  const isV6 = isIPv6(addressPrefix);
  const bits = isV6 ? v6Bits(addressPrefix) : v4Bits(addressPrefix);
  return `${isV6 ? 6 : 4}:${bits.slice(0, prefixLen)}`;
}

function v4Bits(address: string): string {
  return address
    .split('.')
    .map((octet) => Number(octet).toString(2).padStart(8, '0'))
    .join('');
}

function v6Bits(address: string): string {
  const [head = '', tail = ''] = address.split('::');
  const [headBits, tailBits] = [groupBits(head), groupBits(tail)];
  return headBits + '0'.repeat(128 - headBits.length - tailBits.length) + tailBits;
}

/** Bits of colon-separated groups; the last group may be an IPv4 address. */
function groupBits(groups: string): string {
  if (groups === '') return '';
  return groups
    .split(':')
    .map((group) => (group.includes('.') ? v4Bits(group) : Number.parseInt(group, 16).toString(2).padStart(16, '0')))
    .join('');
}
