/**
 * Objects of a namespace are listed once more when they may be kept now: there is room for those that were refused, because somebody has deleted
 * others, or the namespace has become part of the mesh. One list at a time, and of one kind in one namespace one in half a minute, so that objects that
 * come and go cost the API server little.
 */
import type { KubernetesObject } from '../api-server.ts';
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
  /** Namespaces of a kind to be listed for another reason than room. */
  readonly #requested = new Map<RefilledKind, Set<string>>();
  #isRunning = false;

  constructor(kinds: Iterable<RefilledKind>) {
    this.#kinds = kinds;
  }

  /** Objects have changed: some may have left room. */
  look(): void {
    if (!this.#isRunning) void this.#run();
  }

  /** The namespace is listed whether or not objects were refused. */
  request(kind: RefilledKind, namespace: string): void {
    this.#requested.set(kind, (this.#requested.get(kind) ?? new Set()).add(namespace));
    this.look();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) await this.#refill(...next);
    this.#isRunning = false;
  }

  #next(): [RefilledKind, string] | undefined {
    for (const kind of this.#kinds) {
      const requested = this.#requested.get(kind);
      // Mostly there are none of either, and this is looked for after each change.
      if (requested === undefined && kind.store.refused.size === 0) continue;
      const isRested = (namespace: string): boolean => this.#resting.get(kind)?.has(namespace) !== true;
      for (const namespace of requested ?? []) if (isRested(namespace)) return [kind, namespace];
      for (const namespace of kind.store.refused.keys())
        if (kind.store.mayHaveRoom(namespace) && isRested(namespace)) return [kind, namespace];
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
    const isRequested = this.#requested.get(kind)?.delete(namespace) === true;
    try {
      await kind.list(namespace, (object) => {
        const changes = take(object);
        if (changes.length > 0) kind.tell(changes);
      });
    } catch {
      if (isRequested) this.#requested.get(kind)!.add(namespace);
      // After the rest, once more. Why, informers say: they ask the same server.
    }
  }
}
