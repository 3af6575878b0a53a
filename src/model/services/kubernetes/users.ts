/**
 * Pods, addresses and nodes that were looked for, whether they were there or not → the services that looked; nodes → the pods on them.
 * What nobody uses any more is not kept.
 */
export class Users {
  readonly #users = new Map<string, Set<string>>();

  *of(...uses: readonly string[]): Iterable<string> {
    for (const use of uses) yield* this.#users.get(use) ?? [];
  }

  /** A service looked for other things than before. */
  put(service: string, before: ReadonlySet<string>, now: ReadonlySet<string>): void {
    for (const use of before) {
      if (now.has(use)) continue;
      const users = this.#users.get(use);
      users?.delete(service);
      if (users?.size === 0) this.#users.delete(use);
    }
    for (const use of now) {
      if (before.has(use)) continue;
      const users = this.#users.get(use);
      if (users === undefined) this.#users.set(use, new Set([service]));
      else users.add(service);
    }
  }
}
