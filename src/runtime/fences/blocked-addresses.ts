/** Addresses to which this program does not connect if the URL is from a configuration object. */
import { type BlockList, isIPv6 } from 'node:net';
import { networkList } from '../addresses/network-list.ts';
import { embeddedIpv4sOf, specialUseOf } from '../addresses/special-address.ts';

export interface BlockedNetworks {
  /** Blocked in addition to the addresses of special use (loopback, link-local, metadata services and others). */
  readonly blocked?: readonly string[];
  readonly allowed?: readonly string[];
}

export interface NetworkVariables {
  readonly blocked: string;
  readonly allowed: string;
}

export const blockedVariable = 'BLOCKED_CIDRS_IN_JWKS_URIS';
export const allowedVariable = 'ALLOWED_CIDRS_IN_JWKS_URIS';

export class BlockedAddresses {
  readonly #blockedList: BlockList;
  readonly #allowedList: BlockList;
  readonly #variables: NetworkVariables;

  constructor(
    { blocked = [], allowed = [] }: BlockedNetworks = {},
    variables: NetworkVariables = { blocked: blockedVariable, allowed: allowedVariable },
  ) {
    this.#variables = variables;
    this.#blockedList = networkList(variables.blocked, blocked);
    this.#allowedList = networkList(variables.allowed, allowed);
  }

  /** Returns a reason that ends a sentence; `undefined` for a permitted address. */
  problemOf(address: string): string | undefined {
    const isInList = (list: BlockList, address: string): boolean =>
      list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
    const targetAddresses = [address.replace(/%.*$/, ''), ...embeddedIpv4sOf(address)];
    if (targetAddresses.some((candidate) => isInList(this.#blockedList, candidate)))
      return `in ${this.#variables.blocked}`;
    if (targetAddresses.every((candidate) => isInList(this.#allowedList, candidate))) return undefined;
    const use = specialUseOf(address);
    return use === undefined ? undefined : `a ${use} address and not in ${this.#variables.allowed}`;
  }
}
