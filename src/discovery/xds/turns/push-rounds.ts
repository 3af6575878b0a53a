/** Implements `AdsServer.push`, for the conformance target. */
import { throwUncaught } from '../../../runtime/fences/uncaught.ts';
import type { ResourceChange } from '../resource-source.ts';
import { SliceScheduler } from './slices.ts';

export interface PushRoundsOptions {
  readonly clients: () => Iterable<number>;
  readonly serve: (client: number, change: ResourceChange) => void;
  readonly finished?: (durationMs: number, clients: number) => void;
}

/** Changes during a round are combined into the next one. */
export class PushRounds {
  readonly #options: PushRoundsOptions;
  #next: ResourceChange | undefined;
  #currentRound:
    | {
        readonly change: ResourceChange;
        readonly clients: readonly number[];
        completedCount: number;
        startedAt: number;
      }
    | undefined;
  readonly #slices = new SliceScheduler(() => this.#serveNextConnection());

  constructor(options: PushRoundsOptions) {
    this.#options = options;
  }

  push(change: ResourceChange): void {
    this.#next = this.#next === undefined ? change : joinChanges(this.#next, change);
    this.#slices.start();
  }

  stop(): void {
    this.#slices.stop();
    this.#next = undefined;
    this.#currentRound = undefined;
  }

  #serveNextConnection(): boolean {
    const { clients, serve, finished } = this.#options;
    if (this.#currentRound === undefined) {
      const change = this.#next;
      if (change === undefined) return false;
      this.#next = undefined;
      this.#currentRound = { change, clients: [...clients()], completedCount: 0, startedAt: performance.now() };
    }
    const currentRound = this.#currentRound;
    if (currentRound.clients.length > 0) {
      const client = currentRound.clients[currentRound.completedCount++]!;
      try {
        serve(client, currentRound.change);
      } catch (error) {
        throwUncaught(error);
      }
    }
    // Serving may have stopped the server.
    if (currentRound !== this.#currentRound) return false;
    if (currentRound.completedCount < currentRound.clients.length) return true;
    this.#currentRound = undefined;
    finished?.(performance.now() - currentRound.startedAt, currentRound.completedCount);
    return this.#next !== undefined;
  }
}

export function joinChanges(previousChange: ResourceChange, nextChange: ResourceChange): ResourceChange {
  return {
    version: nextChange.version,
    forced: previousChange.forced || nextChange.forced,
    configs: new Set([...previousChange.configs, ...nextChange.configs]),
  };
}
