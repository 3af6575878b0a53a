/**
 * Clusters of clients whose stream has ended. A state-of-the-world client that connects again does not say which clusters it has, and
 * removes those that its first response does not contain, though its routes may name them.
 */
import type { EncodedResource, NodeIdentity } from '../resource-source.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** Clients that are remembered: the oldest one makes room for a new one. */
const maxDepartedClients = 10_000;

/** What a client was sent. */
export interface DepartedResources {
  readonly clusters: ResourceMap;
  readonly assignments: ResourceMap;
}

interface Departed extends DepartedResources {
  readonly until: number;
}

export class DepartedClusters {
  readonly #keptMs: number;
  readonly #clients = new Map<string, Departed>();

  /** @param keptMs how long a client is remembered */
  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** The stream of a client has ended. The maps are usually shared by many clients, and not copied. */
  add(node: NodeIdentity, { clusters, assignments }: DepartedResources, now: number): void {
    const key = keyOf(node);
    this.#clients.delete(key);
    this.#clients.set(key, { clusters, assignments, until: now + this.#keptMs });
    for (const [oldest, { until }] of this.#clients) {
      if (until > now && this.#clients.size <= maxDepartedClients) break;
      this.#clients.delete(oldest);
    }
  }

  /** What the client was sent on its last stream; undefined if that is not known. */
  take(node: NodeIdentity, now: number): DepartedResources | undefined {
    const key = keyOf(node);
    const known = this.#clients.get(key);
    this.#clients.delete(key);
    return known !== undefined && known.until > now ? known : undefined;
  }
}

/** A client that has shown another identity is another one. */
function keyOf({ id, verifiedIdentity = '' }: NodeIdentity): string {
  return `${verifiedIdentity} ${id}`;
}
