/**
 * Nodes that acknowledged a response, by address. Admission prefers them when too many clients connect, and UnidentifiedConnections never rejects all
 * connections of their addresses.
 *
 * Node IDs are not secret, and a client can invent any number. So IDs that were served once are separate from proven ones, which reconnected or were
 * served for half a minute. New IDs evict only each other within their address, and connected nodes are evicted last.
 */
import { hash } from 'node:crypto';

export interface KnownNodesLimits {
  /** Maximum number of new and of proven nodes per address. */
  readonly maxNew: number;
  readonly maxProven: number;
  readonly maxAddresses: number;
  /** Maximum number of nodes of all addresses. */
  readonly maxTotal: number;
}

const defaultLimits: KnownNodesLimits = {
  maxNew: 1_024,
  maxProven: 1_024,
  maxAddresses: 20_000,
  maxTotal: 100_000,
};

const minProvenMs = 30_000;
/** Maximum number of connected nodes that are skipped to find one to evict. */
const maxSkippedGroups = 16;
/** Beyond the total limit, the largest address loses a quarter of its nodes. */
const lossDivisor = 4;

interface NodeRecord {
  streams: number;
  /** Time since which the node has been connected. */
  since: number;
}

interface AddressNodes {
  /** Unproven nodes, least recently seen first. */
  readonly unproven: Map<string, NodeRecord>;
  readonly proven: Map<string, NodeRecord>;
}

export class KnownNodes {
  readonly #now: () => number;
  readonly #limits: KnownNodesLimits;
  readonly #addresses = new Map<string, AddressNodes>();
  #count = 0;

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number, limits: Partial<KnownNodesLimits> = {}) {
    this.#now = now;
    this.#limits = { ...defaultLimits, ...limits };
  }

  hasKnownNodes(group: string): boolean {
    return this.#addresses.has(group);
  }

  has(group: string, node: string): boolean {
    const nodes = this.#addresses.get(group);
    if (nodes === undefined) return false;
    const key = keyOf(node);
    return nodes.proven.has(key) || nodes.unproven.has(key);
  }

  /** Called once for each stream, at its first ACK. */
  recordAcknowledgement(group: string, node: string): void {
    const nodes = this.#touchAddress(group);
    const key = keyOf(node);
    const provenRecord = nodes.proven.get(key);
    const record = provenRecord ?? nodes.unproven.get(key) ?? this.#add();
    const hasNodeReturned = provenRecord === undefined && nodes.unproven.has(key) && record.streams === 0;
    if (record.streams++ === 0) record.since = this.#now();
    nodes.unproven.delete(key);
    nodes.proven.delete(key);
    if (provenRecord !== undefined || hasNodeReturned) nodes.proven.set(key, record);
    else nodes.unproven.set(key, record);
    this.#enforceLimits(nodes);
    if (this.#count > this.#limits.maxTotal) this.#shrinkLargest();
  }

  disconnected(group: string, node: string): void {
    const nodes = this.#addresses.get(group);
    const key = keyOf(node);
    const record = nodes?.proven.get(key) ?? nodes?.unproven.get(key);
    if (nodes === undefined || record === undefined || record.streams === 0) return;
    if (--record.streams > 0) return;
    const isProven = nodes.proven.has(key) || this.#isProvenRecord(record);
    nodes.proven.delete(key);
    nodes.unproven.delete(key);
    (isProven ? nodes.proven : nodes.unproven).set(key, record);
    this.#enforceLimits(nodes);
  }

  #add(): NodeRecord {
    this.#count++;
    return { streams: 0, since: 0 };
  }

  #touchAddress(group: string): AddressNodes {
    const nodes = this.#addresses.get(group) ?? { unproven: new Map(), proven: new Map() };
    this.#addresses.delete(group);
    this.#addresses.set(group, nodes);
    if (this.#addresses.size > this.#limits.maxAddresses) {
      for (const [oldest, { unproven, proven }] of this.#addresses) {
        this.#addresses.delete(oldest);
        this.#count -= unproven.size + proven.size;
        break;
      }
    }
    return nodes;
  }

  #isProvenRecord({ since }: NodeRecord): boolean {
    return this.#now() - since >= minProvenMs;
  }

  #enforceLimits({ unproven, proven }: AddressNodes): void {
    if (unproven.size > this.#limits.maxNew) {
      for (const [key, record] of unproven) {
        unproven.delete(key);
        if (record.streams > 0 && this.#isProvenRecord(record)) proven.set(key, record);
        else this.#count--;
        break;
      }
    }
    if (proven.size > this.#limits.maxProven) this.#evictNode(proven);
  }

  #evictNode(nodes: Map<string, NodeRecord>): void {
    let skipped = 0;
    for (const [key, record] of nodes) {
      nodes.delete(key);
      if (record.streams > 0 && skipped++ < maxSkippedGroups) nodes.set(key, record);
      else {
        this.#count--;
        return;
      }
    }
  }

  #shrinkLargest(): void {
    const sizeOf = ({ unproven, proven }: AddressNodes): number => unproven.size + proven.size;
    let largestAddress: AddressNodes | undefined;
    for (const nodes of this.#addresses.values())
      if (sizeOf(nodes) > (largestAddress ? sizeOf(largestAddress) : 0)) largestAddress = nodes;
    if (largestAddress === undefined) return;
    for (let remainingDrops = Math.ceil(sizeOf(largestAddress) / lossDivisor); remainingDrops > 0; remainingDrops--) {
      this.#evictNode(largestAddress.unproven.size > 0 ? largestAddress.unproven : largestAddress.proven);
    }
  }
}

/** The length of a key is limited, because clients choose the node ID. */
function keyOf(node: string): string {
  return hash('sha1', node, 'base64');
}
