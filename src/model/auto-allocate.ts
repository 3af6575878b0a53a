/** Virtual IPs for services that have none (spec/discovery.md §1.4 PILOT_ENABLE_IP_AUTOALLOCATE). */
import { hashOf } from './persistent-map.ts';

export interface AllocatedAddresses {
  /** Of 240.240.0.0/16. */
  readonly ipv4: string;
  /** Of 2001:2::/48. */
  readonly ipv6: string;
}

/** The first and the last address of the range stay free, as networks have it. */
const capacity = 0xfffe;

/**
 * An address for each name. It follows from a hash of the name, so that all replicas come to the same; where two names
 * meet, the later one in the list moves on, by a step of its own. Names that find no free address get none.
 *
 * @param names each once, the one to keep its address first (oldest first)
 */
export function allocateAddresses(names: readonly string[]): ReadonlyMap<string, AllocatedAddresses> {
  const taken = new Set<number>();
  const result = new Map<string, AllocatedAddresses>();
  for (const name of names.slice(0, capacity)) {
    const slot = freeSlot(name, taken);
    taken.add(slot);
    result.set(name, addressesOf(slot + 1));
  }
  return result;
}

function freeSlot(name: string, taken: ReadonlySet<number>): number {
  let slot = hashOf(name) % capacity;
  if (!taken.has(slot)) return slot;
  // capacity is 2 × 7 × 31 × 151: a step that shares no factor with it comes to every slot.
  let step = 1 + (hashOf(`${name}~`) % (capacity - 1));
  while ([2, 7, 31, 151].some((factor) => step % factor === 0)) step++;
  while (taken.has(slot)) slot = (slot + step) % capacity;
  return slot;
}

function addressesOf(number: number): AllocatedAddresses {
  const [high, low] = [number >> 8, number & 255];
  return { ipv4: `240.240.${high}.${low}`, ipv6: `2001:2::${((240 << 8) | 240).toString(16)}:${number.toString(16)}` };
}
