/**
 * Allocates virtual IPs for services without one. Hashes the name like Istio, so that services keep their addresses when proxies switch control
 * planes.
 */

import { runToEnd, type Steps } from '../../runtime/turns.ts';

export interface AllocatedAddresses {
  /** In 240.240.0.0/16. */
  readonly ipv4: string;
  /** In 2001:2::/48. */
  readonly ipv6: string;
}

/** Excludes one slot in 255, whose address would end in `.0`. */
const slotCount = 256 * 254;
const probeCount = slotCount - 1;
const stepModulus = 65_011;
const maxAttempts = 1_000;

/**
 * Names without a free slot get no address. The result is equal in all replicas.
 * @param names in order of precedence (oldest first)
 */
export function allocateAddresses(names: readonly string[]): ReadonlyMap<string, AllocatedAddresses> {
  const allocation = new AddressAllocation();
  runToEnd(allocation.allocateInSteps(names));
  return allocation.addresses;
}

export class AddressAllocation {
  #addresses = new Map<string, AllocatedSlot>();
  #takenSlots = new Uint8Array(slotCount);
  /** 1 for each occupied slot that another name hashes to. */
  #contestedSlots = new Uint8Array(slotCount);
  /** True if addresses may depend on all names, because a name occurred several times or did not get its preferred slot. */
  #hasContestedSlots = false;
  #version = 0;

  get(name: string): AllocatedAddresses | undefined {
    return this.#addresses.get(name);
  }

  /** While the version is unchanged, existing names keep their addresses. */
  get version(): number {
    return this.#version;
  }

  get addresses(): ReadonlyMap<string, AllocatedAddresses> {
    return this.#addresses;
  }

  /**
   * Adds and removes names, unless the addresses of other names would change or depend on the order.
   * @param removedServices names in both sets keep their addresses
   * @returns false, without any change, if the result depends on the order
   */
  change(removedServices: ReadonlySet<string>, addedServices: ReadonlySet<string>): boolean {
    if (this.#hasContestedSlots) return false;
    const freedSlots = new Set<number>();
    const removedNames = [...removedServices].filter((name) => !addedServices.has(name));
    for (const name of removedNames) {
      const allocatedAddress = this.#addresses.get(name);
      if (allocatedAddress === undefined || this.#contestedSlots[allocatedAddress.slot] === 1) return false;
      freedSlots.add(allocatedAddress.slot);
    }
    const allocatedBySlot = new Map<number, AllocatedSlot & { readonly name: string }>();
    for (const name of addedServices) {
      if (removedServices.has(name)) continue;
      const hash = fnv1a(name);
      const slot = hash % slotCount;
      const isSlotTaken = (this.#takenSlots[slot] === 1 && !freedSlots.has(slot)) || allocatedBySlot.has(slot);
      if (isSlotTaken || !isUsable(slot) || this.#addresses.has(name)) return false;
      allocatedBySlot.set(slot, { ...addressesOf(slot), slot, hash, name });
    }
    for (const name of removedNames) this.#addresses.delete(name);
    for (const slot of freedSlots) this.#takenSlots[slot] = 0;
    for (const [slot, { name, ...addresses }] of allocatedBySlot) {
      this.#addresses.set(name, addresses);
      this.#takenSlots[slot] = 1;
    }
    return true;
  }

  *allocateInSteps(names: readonly string[]): Steps<void> {
    const takenSlots = new Uint8Array(slotCount);
    const contestedSlots = new Uint8Array(slotCount);
    const addresses = new Map<string, AllocatedSlot>();
    const search = { next: 0, isUsed: false };
    let hasContestedSlots = false;
    for (const [index, name] of names.entries()) {
      const allocatedAddress = this.#addresses.get(name);
      const hash = allocatedAddress?.hash ?? fnv1a(name);
      const slot = freeSlot(hash, takenSlots, contestedSlots, search);
      const previousAddress = addresses.get(name);
      hasContestedSlots ||= slot === undefined || previousAddress !== undefined || search.isUsed;
      if (slot === undefined) break;
      takenSlots[slot] = 1;
      if (previousAddress === undefined || slot < previousAddress.slot) {
        addresses.set(name, allocatedAddress?.slot === slot ? allocatedAddress : { ...addressesOf(slot), slot, hash });
      }
      if (index % namesPerStep === namesPerStep - 1) yield;
    }
    this.#addresses = addresses;
    this.#takenSlots = takenSlots;
    this.#contestedSlots = contestedSlots;
    this.#hasContestedSlots = hasContestedSlots;
    this.#version++;
  }
}

interface AllocatedSlot extends AllocatedAddresses {
  readonly slot: number;
  readonly hash: number;
}

export function firstSlot(name: string): number {
  return fnv1a(name) % slotCount;
}

const namesPerStep = 64;

/** @param contestedSlots set to 1 for each occupied slot that the name hashes to */
function freeSlot(
  hash: number,
  takenSlots: Uint8Array,
  contestedSlots: Uint8Array,
  search: { next: number; isUsed: boolean },
): number | undefined {
  const isFree = (slot: number): boolean => {
    if (takenSlots[slot] === 0) return isUsable(slot);
    contestedSlots[slot] = 1;
    return false;
  };
  const initialSlot = hash % slotCount;
  if (isFree(initialSlot)) return initialSlot;
  const step = stepModulus - (hash % stepModulus);
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const slot = ((hash + attempt * step) >>> 0) % probeCount;
    if (isFree(slot)) return slot;
  }
  search.isUsed = true;
  while (search.next < slotCount && !isFree(search.next)) search.next++;
  return search.next < slotCount ? search.next : undefined;
}

function isUsable(slot: number): boolean {
  return (slot + 1) % 255 !== 0;
}

function fnv1a(name: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

function addressesOf(slot: number): AllocatedAddresses {
  const [highByte, lowByte] = [Math.floor((slot + 1) / 255), (slot + 1) % 255];
  return { ipv4: `240.240.${highByte}.${lowByte}`, ipv6: `2001:2::f0f0:${((highByte << 8) | lowByte).toString(16)}` };
}
