/** Serves all clients of a server that has no push queue of its own (the conformance target), in slices of the event loop. */
import type { ResourceChange } from './resource-source.ts';
import { Slices } from './slices.ts';

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
  readonly #slices = new Slices(() => this.#serveOne());

  constructor(options: PushRoundsOptions) {
    this.#options = options;
  }

  push(change: ResourceChange): void {
    this.#next = this.#next === undefined ? change : joinChanges(this.#next, change);
    this.#slices.begin();
  }

  stop(): void {
    this.#slices.stop();
    this.#next = undefined;
    this.#round = undefined;
  }

  /** Returns whether there is another to serve. */
  #serveOne(): boolean {
    const { clients, serve, finished } = this.#options;
    if (this.#round === undefined) {
      this.#round = { change: this.#next!, clients: [...clients()], served: 0, startedAt: performance.now() };
      this.#next = undefined;
    }
    const round = this.#round;
    // A round may have nobody to serve.
    if (round.clients.length > 0) serve(round.clients[round.served++]!, round.change);
    // Serving may have brought the end of the server.
    if (round !== this.#round) return false;
    if (round.served < round.clients.length) return true;
    this.#round = undefined;
    finished?.(performance.now() - round.startedAt, round.served);
    return this.#next !== undefined;
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
