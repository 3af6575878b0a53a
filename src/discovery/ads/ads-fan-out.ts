/** Hands changes to many clients, without keeping the event loop from anything else for long (spec/discovery.md §6.4). */
import type { ResourceChange } from './resource-source.ts';

/** Changes that are kept apart for clients that have had some of them; beyond, all get all of them. */
const maxChanges = 64;
/** Longest time for which clients are served before others get their turn. */
const sliceMs = 5;

export interface FanOutOptions<Client> {
  /** Must not throw. */
  deliver(client: Client, change: ResourceChange): void;
  /** All clients that were there when the fan-out began have been served. */
  finished?(durationMs: number, clients: number): void;
}

/**
 * A queue with one entry a client. A change for a client that waits joins those that it waits for: it is served once,
 * with all of them.
 */
export class FanOut<Client> {
  readonly #options: FanOutOptions<Client>;
  /** Index into the changes of the first one that the client has not had; clients in the order of their turn. */
  readonly #waiting = new Map<Client, number>();
  #changes: ResourceChange[] = [];
  /** Of the changes from this index on; most clients wait for the same ones. */
  #merged: { from: number; until: number; change: ResourceChange } | undefined;
  #scheduled: NodeJS.Immediate | undefined;
  #startedAt = 0;
  #served = 0;

  constructor(options: FanOutOptions<Client>) {
    this.#options = options;
  }

  push(change: ResourceChange, clients: Iterable<Client>): void {
    if (this.#changes.length === 0) {
      this.#startedAt = performance.now();
      this.#served = 0;
    }
    if (this.#changes.length === maxChanges) this.#mergeAll();
    const index = this.#changes.push(change) - 1;
    for (const client of clients) if (!this.#waiting.has(client)) this.#waiting.set(client, index);
    this.#scheduled ??= setImmediate(() => this.#serve());
  }

  /** The client is gone. */
  forget(client: Client): void {
    this.#waiting.delete(client);
  }

  stop(): void {
    if (this.#scheduled !== undefined) clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    this.#waiting.clear();
    this.#changes = [];
  }

  #serve(): void {
    const until = performance.now() + sliceMs;
    for (const [client, from] of this.#waiting) {
      this.#waiting.delete(client);
      this.#served++;
      this.#options.deliver(client, this.#changesFrom(from));
      if (performance.now() >= until) break;
    }
    this.#scheduled = undefined;
    if (this.#waiting.size > 0) {
      this.#scheduled = setImmediate(() => this.#serve());
      return;
    }
    this.#changes = [];
    this.#merged = undefined;
    this.#options.finished?.(performance.now() - this.#startedAt, this.#served);
  }

  #mergeAll(): void {
    this.#changes = [mergeChanges(this.#changes)];
    this.#merged = undefined;
    for (const client of this.#waiting.keys()) this.#waiting.set(client, 0);
  }

  #changesFrom(from: number): ResourceChange {
    const until = this.#changes.length;
    if (this.#merged?.from === from && this.#merged.until === until) return this.#merged.change;
    const change = mergeChanges(this.#changes.slice(from));
    this.#merged = { from, until, change };
    return change;
  }
}

/** Several changes as one: the newest version, and all that changed. */
export function mergeChanges(changes: readonly ResourceChange[]): ResourceChange {
  if (changes.length === 1) return changes[0]!;
  return {
    version: changes.at(-1)!.version,
    forced: changes.some(({ forced }) => forced),
    configs: new Set(changes.flatMap(({ configs }) => [...configs])),
  };
}
