/**
 * Nodes that acknowledged a response, by address. Admission prefers them when too many clients connect, and UnidentifiedConnections never rejects all
 * connections of their addresses.
 *
 * A node ID is not secret, and a client may invent any number of them. So IDs that were served once are separate from proven ones, which reconnected
 * or were served for half a minute. New IDs evict only each other within their address, and connected nodes are evicted last. Beyond the total limit,
 * the address with the most nodes loses a quarter.
 */
import { hash } from 'node:crypto';

export interface KnownNodesLimits {
  /** New and proven nodes of one address. Default 1024 each. */
  readonly maxNew: number;
  readonly maxProven: number;
  /** Default 20 000. */
  readonly maxAddresses: number;
  /** Nodes of all addresses. Default 100 000. */
  readonly maxTotal: number;
}

const knownNodesLimits: KnownNodesLimits = {
  maxNew: 1_024,
  maxProven: 1_024,
  maxAddresses: 20_000,
  maxTotal: 100_000,
};

const provenAfterMs = 30_000;
/** Maximum number of connected nodes that are skipped to find one to evict. */
const maxSkipped = 16;
/** Evict a quarter of the nodes of the largest address. */
const shareLost = 4;

interface Seen {
  streams: number;
  /** Since when the node has been connected. */
  since: number;
}

interface OfAddress {
  /** Least recently seen first. */
  readonly fresh: Map<string, Seen>;
  readonly proven: Map<string, Seen>;
}

export class KnownNodes {
  readonly #now: () => number;
  readonly #limits: KnownNodesLimits;
  /** Least recently seen first. */
  readonly #addresses = new Map<string, OfAddress>();
  #count = 0;

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number, limits: Partial<KnownNodesLimits> = {}) {
    this.#now = now;
    this.#limits = { ...knownNodesLimits, ...limits };
  }

  hasAny(group: string): boolean {
    return this.#addresses.has(group);
  }

  has(group: string, node: string): boolean {
    const ofAddress = this.#addresses.get(group);
    if (ofAddress === undefined) return false;
    const key = keyOf(node);
    return ofAddress.proven.has(key) || ofAddress.fresh.has(key);
  }

  /** Call once for each stream, at its first ACK. */
  acknowledged(group: string, node: string): void {
    const ofAddress = this.#seeAddress(group);
    const key = keyOf(node);
    const proven = ofAddress.proven.get(key);
    const seen = proven ?? ofAddress.fresh.get(key) ?? this.#add();
    const hasReturned = proven === undefined && ofAddress.fresh.has(key) && seen.streams === 0;
    if (seen.streams++ === 0) seen.since = this.#now();
    ofAddress.fresh.delete(key);
    ofAddress.proven.delete(key);
    if (proven !== undefined || hasReturned) ofAddress.proven.set(key, seen);
    else ofAddress.fresh.set(key, seen);
    this.#enforceLimits(ofAddress);
    if (this.#count > this.#limits.maxTotal) this.#shrinkLargest();
  }

  disconnected(group: string, node: string): void {
    const ofAddress = this.#addresses.get(group);
    const key = keyOf(node);
    const seen = ofAddress?.proven.get(key) ?? ofAddress?.fresh.get(key);
    if (ofAddress === undefined || seen === undefined || seen.streams === 0) return;
    if (--seen.streams > 0) return;
    const isProven = ofAddress.proven.has(key) || this.#hasProvenItself(seen);
    ofAddress.proven.delete(key);
    ofAddress.fresh.delete(key);
    (isProven ? ofAddress.proven : ofAddress.fresh).set(key, seen);
    this.#enforceLimits(ofAddress);
  }

  #add(): Seen {
    this.#count++;
    return { streams: 0, since: 0 };
  }

  #seeAddress(group: string): OfAddress {
    const ofAddress = this.#addresses.get(group) ?? { fresh: new Map(), proven: new Map() };
    this.#addresses.delete(group);
    this.#addresses.set(group, ofAddress);
    if (this.#addresses.size > this.#limits.maxAddresses) {
      for (const [oldest, { fresh, proven }] of this.#addresses) {
        this.#addresses.delete(oldest);
        this.#count -= fresh.size + proven.size;
        break;
      }
    }
    return ofAddress;
  }

  #hasProvenItself({ since }: Seen): boolean {
    return this.#now() - since >= provenAfterMs;
  }

  #enforceLimits({ fresh, proven }: OfAddress): void {
    if (fresh.size > this.#limits.maxNew) {
      for (const [key, seen] of fresh) {
        fresh.delete(key);
        if (seen.streams > 0 && this.#hasProvenItself(seen)) proven.set(key, seen);
        else this.#count--;
        break;
      }
    }
    if (proven.size > this.#limits.maxProven) this.#dropOne(proven);
  }

  #dropOne(nodes: Map<string, Seen>): void {
    let skipped = 0;
    for (const [key, seen] of nodes) {
      nodes.delete(key);
      if (seen.streams > 0 && skipped++ < maxSkipped) nodes.set(key, seen);
      else {
        this.#count--;
        return;
      }
    }
  }

  #shrinkLargest(): void {
    const sizeOf = ({ fresh, proven }: OfAddress): number => fresh.size + proven.size;
    let largest: OfAddress | undefined;
    for (const ofAddress of this.#addresses.values())
      if (sizeOf(ofAddress) > (largest ? sizeOf(largest) : 0)) largest = ofAddress;
    if (largest === undefined) return;
    for (let left = Math.ceil(sizeOf(largest) / shareLost); left > 0; left--) {
      this.#dropOne(largest.fresh.size > 0 ? largest.fresh : largest.proven);
    }
  }
}

/** Bounds the length, which clients choose. */
function keyOf(node: string): string {
  return hash('sha1', node, 'base64');
}
