/**
 * Reverse index from looked-up pods, addresses and nodes (existing or not) to the services that looked them up, and from nodes to pods. Unused keys
 * are removed.
 */
export class UsageIndex {
  readonly #users = new Map<string, Set<string>>();

  *of(...uses: readonly string[]): Iterable<string> {
    for (const use of uses) yield* this.#users.get(use) ?? [];
  }

  put(service: string, previous: ReadonlySet<string>, now: ReadonlySet<string>): void {
    for (const use of previous) {
      if (now.has(use)) continue;
      const users = this.#users.get(use);
      users?.delete(service);
      if (users?.size === 0) this.#users.delete(use);
    }
    for (const use of now) {
      if (previous.has(use)) continue;
      const users = this.#users.get(use);
      if (users === undefined) this.#users.set(use, new Set([service]));
      else users.add(service);
    }
  }
}
