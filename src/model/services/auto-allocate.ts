/**
 * Virtual IPs for services that have none (spec/discovery.md §1.4 PILOT_ENABLE_IP_AUTOALLOCATE). Istio allocates the
 * same ones, by a hash of the name: proxies keep their addresses when they change over from one control plane to another.
 */

import { atOnce, type Steps } from '../../runtime/turns.ts';

export interface AllocatedAddresses {
  /** An address of 240.240.0.0/16. */
  readonly ipv4: string;
  /** An address of 2001:2::/48. */
  readonly ipv6: string;
}

/** Slots of the range; the one before each 255th address stays free, for its address would end in `.0`. */
const slots = 256 * 254;
/** What other places are counted in when the first one is taken. */
const otherSlots = slots - 1;
const stepModulus = 65_011;
/** Tries before free places are looked for one by one. */
const maxTries = 1_000;

/**
 * An address for each name, the same in all replicas. Where two names meet, the later one in the list moves on, by a
 * step of its own. A name that comes more than once takes as many slots, and has the address of the lowest. Names that
 * find no free slot get none.
 *
 * @param names the one to keep its address first (oldest first)
 */
export function allocateAddresses(names: readonly string[]): ReadonlyMap<string, AllocatedAddresses> {
  return atOnce(allocatingAddresses(names));
}

/** The same in steps. */
export function* allocatingAddresses(names: readonly string[]): Steps<ReadonlyMap<string, AllocatedAddresses>> {
  const taken = new Set<number>();
  const lowest = new Map<string, number>();
  const search = { next: 0 };
  for (const name of names) {
    const slot = freeSlot(name, taken, search);
    if (slot === undefined) break;
    taken.add(slot);
    lowest.set(name, Math.min(slot, lowest.get(name) ?? slot));
    yield;
  }
  const addresses = new Map<string, AllocatedAddresses>();
  for (const [name, slot] of lowest) {
    addresses.set(name, addressesOf(slot));
    yield;
  }
  return addresses;
}

function freeSlot(name: string, taken: ReadonlySet<number>, search: { next: number }): number | undefined {
  const isFree = (slot: number): boolean => !taken.has(slot) && isUsable(slot);
  const hash = fnv1a(name);
  const first = hash % slots;
  if (isFree(first)) return first;
  const step = stepModulus - (hash % stepModulus);
  for (let tries = 1; tries <= maxTries; tries++) {
    const slot = ((hash + tries * step) >>> 0) % otherSlots;
    if (isFree(slot)) return slot;
  }
  while (search.next < slots && !isFree(search.next)) search.next++;
  return search.next < slots ? search.next : undefined;
}

function isUsable(slot: number): boolean {
  return (slot + 1) % 255 !== 0;
}

/** FNV-1a of 32 bits, of the name's bytes (RFC 9923). */
function fnv1a(name: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

function addressesOf(slot: number): AllocatedAddresses {
  const [high, low] = [Math.floor((slot + 1) / 255), (slot + 1) % 255];
  return { ipv4: `240.240.${high}.${low}`, ipv6: `2001:2::f0f0:${((high << 8) | low).toString(16)}` };
}
