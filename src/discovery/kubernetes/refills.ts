/**
 * Objects that were refused because their namespace had no room are listed once more when it has some: somebody has deleted others. One list at a
 * time, and of one kind in one namespace one in half a minute, so that objects that come and go cost the API server little.
 */
import type { KubernetesObject } from './api-server.ts';
import type { ObjectChange, ObjectStore } from './object-store.ts';

/** Between two lists of one kind in one namespace. */
export const refillRestMs = 30_000;

export interface RefilledKind {
  readonly store: ObjectStore;
  /** Lists the objects of the namespace. */
  list(namespace: string, onItem: (object: KubernetesObject) => void): Promise<void>;
  /** Tells readers. */
  tell(changes: readonly ObjectChange[]): void;
}

export class Refills {
  readonly #kinds: Iterable<RefilledKind>;
  /** Namespaces of a kind that rest, or are being listed. */
  readonly #resting = new Map<RefilledKind, Set<string>>();
  #isRunning = false;

  constructor(kinds: Iterable<RefilledKind>) {
    this.#kinds = kinds;
  }

  /** Objects have changed: some may have left room. */
  look(): void {
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) await this.#refill(...next);
    this.#isRunning = false;
  }

  #next(): [RefilledKind, string] | undefined {
    for (const kind of this.#kinds) {
      for (const namespace of kind.store.refused.keys()) {
        if (kind.store.mayHaveRoom(namespace) && this.#resting.get(kind)?.has(namespace) !== true)
          return [kind, namespace];
      }
    }
    return undefined;
  }

  async #refill(kind: RefilledKind, namespace: string): Promise<void> {
    const resting = this.#resting.get(kind) ?? new Set();
    this.#resting.set(kind, resting.add(namespace));
    const end = (): void => {
      resting.delete(namespace);
      this.look();
    };
    setTimeout(end, refillRestMs).unref();
    const take = kind.store.beginRefill(namespace);
    try {
      await kind.list(namespace, (object) => {
        const changes = take(object);
        if (changes.length > 0) kind.tell(changes);
      });
    } catch {
      // After the rest, once more. Why, informers say: they ask the same server.
    }
  }
}
