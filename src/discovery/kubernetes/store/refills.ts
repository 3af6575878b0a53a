/**
 * Lists the objects of a namespace again when rejected ones may fit, or when the namespace joins the mesh. Runs at most one list per kind and
 * namespace in 30 s.
 */
import type { KubernetesObject } from '../api-server.ts';
import type { ObjectChange, ObjectStore } from './object-store.ts';

export const minRefillIntervalMs = 30_000;

export interface RefilledKind {
  readonly store: ObjectStore;
  list(namespace: string, onItem: (object: KubernetesObject) => void): Promise<void>;
  notifyReaders(changes: readonly ObjectChange[]): void;
}

export class Refills {
  readonly #kinds: Iterable<RefilledKind>;
  readonly #recentlyListed = new Map<RefilledKind, Set<string>>();
  readonly #requestedNamespaces = new Map<RefilledKind, Set<string>>();
  #isRunning = false;

  constructor(kinds: Iterable<RefilledKind>) {
    this.#kinds = kinds;
  }

  checkDue(): void {
    if (!this.#isRunning) void this.#run();
  }

  request(kind: RefilledKind, namespace: string): void {
    this.#requestedNamespaces.set(kind, (this.#requestedNamespaces.get(kind) ?? new Set()).add(namespace));
    this.checkDue();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      for (let next = this.#nextRefill(); next !== undefined; next = this.#nextRefill()) await this.#refill(...next);
    } finally {
      this.#isRunning = false;
    }
  }

  #nextRefill(): [RefilledKind, string] | undefined {
    for (const kind of this.#kinds) {
      const requestedNamespaces = this.#requestedNamespaces.get(kind);
      // Called after each change, and usually there is nothing to do.
      if (requestedNamespaces === undefined && kind.store.refusedCounts.size === 0) continue;
      const mayList = (namespace: string): boolean => this.#recentlyListed.get(kind)?.has(namespace) !== true;
      for (const namespace of requestedNamespaces ?? []) if (mayList(namespace)) return [kind, namespace];
      for (const namespace of kind.store.refusedCounts.keys())
        if (kind.store.mayFitRejected(namespace) && mayList(namespace)) return [kind, namespace];
    }
    return undefined;
  }

  async #refill(kind: RefilledKind, namespace: string): Promise<void> {
    const recentlyListed = this.#recentlyListed.get(kind) ?? new Set();
    this.#recentlyListed.set(kind, recentlyListed.add(namespace));
    const endRefill = (): void => {
      recentlyListed.delete(namespace);
      this.checkDue();
    };
    setTimeout(endRefill, minRefillIntervalMs).unref();
    const addObject = kind.store.beginRefill(namespace);
    const isRequested = this.#requestedNamespaces.get(kind)?.delete(namespace) === true;
    try {
      await kind.list(namespace, (object) => {
        const changes = addObject(object);
        if (changes.length > 0) kind.notifyReaders(changes);
      });
    } catch {
      if (isRequested) this.#requestedNamespaces.get(kind)!.add(namespace);
      // The list is retried after the interval. The failure is not logged, because the informers of the same server report it.
    }
  }
}
