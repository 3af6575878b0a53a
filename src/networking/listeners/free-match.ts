/**
 * Reduces filter chain matches to what earlier chains of the listener do not match. Envoy expands a match to each
 * combination of address range and server name, and rejects a listener in which two chains have a combination in
 * common, even if their lists differ otherwise. So each chain gets the combinations that no earlier one has.
 */
import { isIPv6 } from 'node:net';
import { cidrRange } from '../messages/address.ts';
import type { ChainMatch } from './filter-chain.ts';

/** The combinations that the chains of one listener match. */
export class TakenMatches {
  readonly #taken = new Set<string>();

  /**
   * Claims the free part of a match and returns it: the match itself, nothing, or several matches (if one range leaves
   * other server names free than another).
   */
  take(match: ChainMatch): readonly ChainMatch[] {
    const source = match.sourceSubnet === undefined ? '' : subnetText(match.sourceSubnet);
    const parts = new Map<string, { serverNames: string[]; destinationSubnets: string[] }>();
    let isUntaken = true;
    for (const subnet of anyOf(match.destinationSubnets?.filter(isRange))) {
      const free: string[] = [];
      for (const name of anyOf(match.serverNames)) {
        const combination = `${subnetText(subnet)} ${name} ${source}`;
        if (this.#taken.has(combination)) isUntaken = false;
        else {
          this.#taken.add(combination);
          free.push(name);
        }
      }
      if (free.length === 0) continue;
      const key = free.join();
      const part = parts.get(key);
      if (part === undefined) parts.set(key, { serverNames: free, destinationSubnets: [subnet] });
      else part.destinationSubnets.push(subnet);
    }
    if (isUntaken) return [match];
    return [...parts.values()].map(({ serverNames, destinationSubnets }) => ({
      ...match,
      serverNames: serverNames.filter((name) => name !== ''),
      destinationSubnets: destinationSubnets.filter((subnet) => subnet !== ''),
    }));
  }
}

/** An invalid range matches nothing and is omitted. */
function isRange(text: string): boolean {
  return cidrRange(text) !== undefined;
}

/** An empty list matches anything, which is one combination. */
function anyOf(list: readonly string[] | undefined): readonly string[] {
  return list?.length ? list : [''];
}

/** Equal texts for equal ranges, because bits after the prefix have no meaning. Other texts are returned unchanged. */
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
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('');
}

function v6Bits(address: string): string {
  const [head = '', tail = ''] = address.split('::');
  const [headBits, tailBits] = [groupBits(head), groupBits(tail)];
  return headBits + '0'.repeat(128 - headBits.length - tailBits.length) + tailBits;
}

/** Bits of the groups between colons, the last of which may be an IPv4 address. */
function groupBits(groups: string): string {
  if (groups === '') return '';
  return groups
    .split(':')
    .map((group) => (group.includes('.') ? v4Bits(group) : Number.parseInt(group, 16).toString(2).padStart(16, '0')))
    .join('');
}
