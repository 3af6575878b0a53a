/**
 * Keeps resources of clients whose stream ended. A reconnecting SotW client does not report its clusters, and removes clusters that are missing in
 * the first response, although its routes may name them.
 */
import type { EncodedResource, NodeIdentity } from '../resource-source.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

const maxDepartedClients = 10_000;

export interface DepartedResources {
  readonly clusters: ResourceMap;
  readonly assignments: ResourceMap;
}

interface DepartedAssignments extends DepartedResources {
  readonly expiresAt: number;
}

export class DepartedClusters {
  readonly #retentionMs: number;
  readonly #clients = new Map<string, DepartedAssignments>();

  constructor(retentionMs: number) {
    this.#retentionMs = retentionMs;
  }

  /** Maps are not copied, because many clients share them. */
  add(node: NodeIdentity, { clusters, assignments }: DepartedResources, now: number): void {
    const key = keyOf(node);
    this.#clients.delete(key);
    this.#clients.set(key, { clusters, assignments, expiresAt: now + this.#retentionMs });
    for (const [oldest, { expiresAt }] of this.#clients) {
      if (expiresAt > now && this.#clients.size <= maxDepartedClients) break;
      this.#clients.delete(oldest);
    }
  }

  takeDeparted(node: NodeIdentity, now: number): DepartedResources | undefined {
    const key = keyOf(node);
    const departedClient = this.#clients.get(key);
    this.#clients.delete(key);
    return departedClient !== undefined && departedClient.expiresAt > now ? departedClient : undefined;
  }
}

/** The same node ID with another identity is another client. */
function keyOf({ id, verifiedIdentity = '' }: NodeIdentity): string {
  return `${verifiedIdentity} ${id}`;
}
