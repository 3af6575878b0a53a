/** Serves all clients of a server without a push queue (the conformance target) in slices of the event loop. */
import { letEscape } from '../../../runtime/fences/uncaught.ts';
import type { ResourceChange } from '../resource-source.ts';
import { Slices } from './slices.ts';

export interface PushRoundsOptions {
  /** Called at the start of each round. */
  readonly clients: () => Iterable<number>;
  /** Errors are reported as uncaught. Other clients are served anyway. */
  readonly serve: (client: number, change: ResourceChange) => void;
  readonly finished?: (durationMs: number, clients: number) => void;
}

/** Changes during a round are combined into the next one. */
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

  /** @returns whether there is another client */
  #serveOne(): boolean {
    const { clients, serve, finished } = this.#options;
    if (this.#round === undefined) {
      const change = this.#next;
      if (change === undefined) return false;
      this.#next = undefined;
      this.#round = { change, clients: [...clients()], served: 0, startedAt: performance.now() };
    }
    const round = this.#round;
    // A round may have no clients.
    if (round.clients.length > 0) {
      const client = round.clients[round.served++]!;
      try {
        serve(client, round.change);
      } catch (error) {
        letEscape(error);
      }
    }
    // Serving may have stopped the server.
    if (round !== this.#round) return false;
    if (round.served < round.clients.length) return true;
    this.#round = undefined;
    finished?.(performance.now() - round.startedAt, round.served);
    return this.#next !== undefined;
  }
}

export function joinChanges(earlier: ResourceChange, later: ResourceChange): ResourceChange {
  return {
    version: later.version,
    forced: earlier.forced || later.forced,
    configs: new Set([...earlier.configs, ...later.configs]),
  };
}
