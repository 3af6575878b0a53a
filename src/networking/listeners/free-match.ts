/**
 * What is left for a filter chain to match beside others of its listener. Envoy spreads the lists of a match out, every
 * range with every server name, and refuses a listener in which two chains have one such combination in common, even if
 * the rest of their lists differs. So a chain gets the combinations that none before it has.
 */
import { isIPv6 } from 'node:net';
import { cidrRange } from '../messages/address.ts';
import type { ChainMatch } from './filter-chain.ts';

/** The combinations that chains of one listener have. */
export class TakenMatches {
  readonly #taken = new Set<string>();

  /**
   * Takes what is free of a match, and says what that is: the match itself, nothing, or the parts that it falls into
   * (where one range leaves other server names free than another).
   */
  take(match: ChainMatch): readonly ChainMatch[] {
    const source = match.sourceSubnet === undefined ? '' : subnetText(match.sourceSubnet);
    const parts = new Map<string, { serverNames: string[]; destinationSubnets: string[] }>();
    let isWhole = true;
    for (const subnet of anyOf(match.destinationSubnets?.filter(isRange))) {
      const free: string[] = [];
      for (const name of anyOf(match.serverNames)) {
        const combination = `${subnetText(subnet)} ${name} ${source}`;
        if (this.#taken.has(combination)) isWhole = false;
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
    if (isWhole) return [match];
    return [...parts.values()].map(({ serverNames, destinationSubnets }) => ({
      ...match,
      serverNames: serverNames.filter((name) => name !== ''),
      destinationSubnets: destinationSubnets.filter((subnet) => subnet !== ''),
    }));
  }
}

/** Ranges that are none are matched by nothing, and are in no chain. */
function isRange(text: string): boolean {
  return cidrRange(text) !== undefined;
}

/** A list that is empty matches anything: that is one combination, too. */
function anyOf(list: readonly string[] | undefined): readonly string[] {
  return list?.length ? list : [''];
}

/** The same for texts of the same range; bits behind the prefix mean nothing. Other texts as they are. */
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
  const [before, after] = [groupBits(head), groupBits(tail)];
  return before + '0'.repeat(128 - before.length - after.length) + after;
}

/** Bits of the groups between colons, the last of which may be an IPv4 address. */
function groupBits(groups: string): string {
  if (groups === '') return '';
  return groups
    .split(':')
    .map((group) => (group.includes('.') ? v4Bits(group) : Number.parseInt(group, 16).toString(2).padStart(16, '0')))
    .join('');
}
