/** Maps pods, addresses and nodes, existing or not, to the services that looked them up. Also maps nodes to pods. */
export class UsageIndex {
  readonly #users = new Map<string, Set<string>>();

  *usersOf(...uses: readonly string[]): Iterable<string> {
    for (const use of uses) yield* this.#users.get(use) ?? [];
  }

  setUsedKeys(service: string, previous: ReadonlySet<string>, current: ReadonlySet<string>): void {
    for (const use of previous) {
      if (current.has(use)) continue;
      const users = this.#users.get(use);
      users?.delete(service);
      if (users?.size === 0) this.#users.delete(use);
    }
    for (const use of current) {
      if (previous.has(use)) continue;
      const users = this.#users.get(use);
      if (users === undefined) this.#users.set(use, new Set([service]));
      else users.add(service);
    }
  }
}
