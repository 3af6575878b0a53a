/**
 * Nodes that were served, by address: those that acknowledged what they were sent. They go first when more come than may
 * begin (see Admission), and where any of them lives an address is not shut out altogether (see Strangers).
 *
 * A node's id is no secret, and anybody may bring any number of new ones. So a node that came once is remembered apart from
 * one that has proven itself: it came back, or was served for half a minute. New ids push out only each other, within their
 * address; one that is being served now is pushed out last. When there are too many in whole, the address with the most of
 * them loses some.
 */
import { hash } from 'node:crypto';

export interface KnownNodesLimits {
  /** Nodes of one address that came once; and those that have proven themselves. Default 1024 of each. */
  readonly mostNew: number;
  readonly mostProven: number;
  /** Default 20 000. */
  readonly mostAddresses: number;
  /** Nodes of all addresses together. Default 100 000. */
  readonly mostInWhole: number;
}

const knownNodesLimits: KnownNodesLimits = {
  mostNew: 1_024,
  mostProven: 1_024,
  mostAddresses: 20_000,
  mostInWhole: 100_000,
};

const provenAfterMs = 30_000;
/** Nodes that are being served and are passed over when one has to go: with more than these none is spared. */
const mostPassedOver = 16;
/** What the address with the most nodes loses when there are too many in whole. */
const shareLost = 4;

interface Seen {
  /** Streams by which it is being served now. */
  streams: number;
  /** Since when there has been one. */
  since: number;
}

interface OfAddress {
  /** Both: least recently seen first. */
  readonly fresh: Map<string, Seen>;
  readonly proven: Map<string, Seen>;
}

export class KnownNodes {
  readonly #now: () => number;
  readonly #limits: KnownNodesLimits;
  /** Least recently seen first. */
  readonly #addresses = new Map<string, OfAddress>();
  #count = 0;

  /** @param now monotonic milliseconds */
  constructor(now: () => number, limits: Partial<KnownNodesLimits> = {}) {
    this.#now = now;
    this.#limits = { ...knownNodesLimits, ...limits };
  }

  /** Whether any node was served at this address. */
  hasAny(group: string): boolean {
    return this.#addresses.has(group);
  }

  has(group: string, node: string): boolean {
    const own = this.#addresses.get(group);
    if (own === undefined) return false;
    const key = keyOf(node);
    return own.proven.has(key) || own.fresh.has(key);
  }

  /** A stream's node has taken what it was sent. Once for each stream. */
  acknowledged(group: string, node: string): void {
    const own = this.#seeAddress(group);
    const key = keyOf(node);
    const proven = own.proven.get(key);
    const seen = proven ?? own.fresh.get(key) ?? this.#add();
    const cameBack = proven === undefined && own.fresh.has(key) && seen.streams === 0;
    if (seen.streams++ === 0) seen.since = this.#now();
    own.fresh.delete(key);
    own.proven.delete(key);
    if (proven !== undefined || cameBack) own.proven.set(key, seen);
    else own.fresh.set(key, seen);
    this.#makeRoom(own);
    if (this.#count > this.#limits.mostInWhole) this.#shrinkLargest();
  }

  /** A stream of this node is gone. */
  gone(group: string, node: string): void {
    const own = this.#addresses.get(group);
    const key = keyOf(node);
    const seen = own?.proven.get(key) ?? own?.fresh.get(key);
    if (own === undefined || seen === undefined || seen.streams === 0) return;
    if (--seen.streams > 0) return;
    const isProven = own.proven.has(key) || this.#hasProvenItself(seen);
    own.proven.delete(key);
    own.fresh.delete(key);
    (isProven ? own.proven : own.fresh).set(key, seen);
    this.#makeRoom(own);
  }

  #add(): Seen {
    this.#count++;
    return { streams: 0, since: 0 };
  }

  #seeAddress(group: string): OfAddress {
    const own = this.#addresses.get(group) ?? { fresh: new Map(), proven: new Map() };
    this.#addresses.delete(group);
    this.#addresses.set(group, own);
    if (this.#addresses.size > this.#limits.mostAddresses) {
      for (const [oldest, { fresh, proven }] of this.#addresses) {
        this.#addresses.delete(oldest);
        this.#count -= fresh.size + proven.size;
        break;
      }
    }
    return own;
  }

  #hasProvenItself({ since }: Seen): boolean {
    return this.#now() - since >= provenAfterMs;
  }

  #makeRoom({ fresh, proven }: OfAddress): void {
    if (fresh.size > this.#limits.mostNew) {
      for (const [key, seen] of fresh) {
        fresh.delete(key);
        if (seen.streams > 0 && this.#hasProvenItself(seen)) proven.set(key, seen);
        else this.#count--;
        break;
      }
    }
    if (proven.size > this.#limits.mostProven) this.#dropOne(proven);
  }

  #dropOne(nodes: Map<string, Seen>): void {
    let passedOver = 0;
    for (const [key, seen] of nodes) {
      nodes.delete(key);
      if (seen.streams > 0 && passedOver++ < mostPassedOver) nodes.set(key, seen);
      else {
        this.#count--;
        return;
      }
    }
  }

  #shrinkLargest(): void {
    const sizeOf = ({ fresh, proven }: OfAddress): number => fresh.size + proven.size;
    let largest: OfAddress | undefined;
    for (const own of this.#addresses.values()) if (sizeOf(own) > (largest ? sizeOf(largest) : 0)) largest = own;
    if (largest === undefined) return;
    for (let left = Math.ceil(sizeOf(largest) / shareLost); left > 0; left--) {
      this.#dropOne(largest.fresh.size > 0 ? largest.fresh : largest.proven);
    }
  }
}

/** A key of bounded length: a client chooses how long its id is. */
function keyOf(node: string): string {
  return hash('sha1', node, 'base64');
}
