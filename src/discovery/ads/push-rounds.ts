/** Serves all clients of a server that has no push queue of its own (the conformance target), in slices of the event loop. */
import type { ResourceChange } from './resource-source.ts';

/** Longest time for which clients are served before others get their turn. */
const sliceMs = 5;

export interface PushRoundsOptions {
  /** Who is to be served when a round begins. */
  readonly clients: () => Iterable<number>;
  /** Must not throw. */
  readonly serve: (client: number, change: ResourceChange) => void;
  /** A round has served everybody: milliseconds since it began. */
  readonly finished?: (durationMs: number, clients: number) => void;
}

/** Changes that come during a round are served together in the next one. */
export class PushRounds {
  readonly #options: PushRoundsOptions;
  #next: ResourceChange | undefined;
  #round:
    | { readonly change: ResourceChange; readonly clients: readonly number[]; served: number; startedAt: number }
    | undefined;
  #scheduled: NodeJS.Immediate | undefined;

  constructor(options: PushRoundsOptions) {
    this.#options = options;
  }

  push(change: ResourceChange): void {
    this.#next = this.#next === undefined ? change : joinChanges(this.#next, change);
    this.#scheduled ??= setImmediate(() => this.#turn());
  }

  stop(): void {
    if (this.#scheduled !== undefined) clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    this.#next = undefined;
    this.#round = undefined;
  }

  #turn(): void {
    const { clients, serve, finished } = this.#options;
    this.#scheduled = undefined;
    if (this.#round === undefined) {
      this.#round = { change: this.#next!, clients: [...clients()], served: 0, startedAt: performance.now() };
      this.#next = undefined;
    }
    const round = this.#round;
    const until = performance.now() + sliceMs;
    while (round.served < round.clients.length && performance.now() < until) {
      serve(round.clients[round.served++]!, round.change);
    }
    if (round.served === round.clients.length) {
      this.#round = undefined;
      finished?.(performance.now() - round.startedAt, round.served);
    }
    if (this.#round !== undefined || this.#next !== undefined) this.#scheduled = setImmediate(() => this.#turn());
  }
}

/** Two changes as one: the later version, and all that changed. */
export function joinChanges(earlier: ResourceChange, later: ResourceChange): ResourceChange {
  return {
    version: later.version,
    forced: earlier.forced || later.forced,
    configs: new Set([...earlier.configs, ...later.configs]),
  };
}
