/** Shares out the time that requests take: however many there are and however large, others get their turns in between. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { letEscape } from '../../../runtime/fences/uncaught.ts';
import { isTurnFull, Slices } from '../turns/slices.ts';

/** What requests may take of one turn of the event loop before the next ones wait for a later turn. */
const turnMs = 5;
/** After a request that took longer than a turn its stream rests for so many times as long. */
const restFactor = 3;
/** A request of more bytes than this waits for a turn in any case: it may take long by itself. */
const largeBytes = 32 * 1024;

/** Work that is done piece by piece: each call does a little, and says whether there is more to do. What throws is over. */
export type Piecework = () => boolean;

/** When work that clients bring about is done. */
export interface Turns {
  /**
   * Does it at once when it is small and there is time; else in its turn. What it throws is told to the last fence.
   *
   * @param next called, whatever was thrown, when whoever brought it about may bring about more: later when it took long
   */
  run(work: () => void, bytes: number, next?: () => void): void;
  /** Does it piece by piece; others have their pieces in between. */
  begin(work: Piecework): void;
}

/** One line for all streams of a server: first come, first served, and back to its end with what is not done yet. */
export class RequestTurns implements Turns {
  #waiting: Piecework[] = [];
  /** Work that has had its piece, and comes up next. */
  #next: Piecework[] = [];
  readonly #slices = new Slices(() => this.#piece());
  /** When the first request of this turn of the event loop came. */
  #turnBegan: number | undefined;
  #endOfTurn: NodeJS.Immediate | undefined;

  run(work: () => void, bytes: number, next?: () => void): void {
    if (bytes <= largeBytes && this.#isIdle && this.#hasTime()) {
      doAndRest(work, next);
      return;
    }
    this.begin(() => {
      doAndRest(work, next);
      return false;
    });
  }

  begin(work: Piecework): void {
    // Work runs in the name of its owner, not of whoever happened to begin the turns: what escapes costs the owner.
    const inOwnName = AsyncLocalStorage.snapshot();
    this.#next.push(() => inOwnName(fenced, work));
    this.#slices.begin();
  }

  stop(): void {
    this.#slices.stop();
    if (this.#endOfTurn !== undefined) clearImmediate(this.#endOfTurn);
    this.#waiting = [];
    this.#next = [];
  }

  /** Work that waits. */
  get size(): number {
    return this.#waiting.length + this.#next.length;
  }

  get #isIdle(): boolean {
    return this.size === 0;
  }

  #hasTime(): boolean {
    const now = performance.now();
    if (this.#turnBegan === undefined) {
      this.#turnBegan = now;
      this.#endOfTurn = setImmediate(() => {
        this.#turnBegan = undefined;
      });
    }
    return now - this.#turnBegan < turnMs && !isTurnFull();
  }

  /** Two lists rather than one: taking from the front of a long one costs as much as it is long. */
  #piece(): boolean {
    if (this.#waiting.length === 0) {
      this.#waiting = this.#next.reverse();
      this.#next = [];
    }
    const work = this.#waiting.pop();
    if (work?.() === true) this.#next.push(work);
    return !this.#isIdle;
  }
}

function fenced(work: Piecework): boolean {
  try {
    return work();
  } catch (error) {
    letEscape(error);
    return false;
  }
}

function doAndRest(work: () => void, next: (() => void) | undefined): void {
  const started = performance.now();
  try {
    work();
  } catch (error) {
    letEscape(error);
  }
  const tookMs = performance.now() - started;
  if (next === undefined) return;
  if (tookMs <= turnMs) next();
  else setTimeout(next, tookMs * restFactor);
}

/** Everything at once: for tests, in which nobody waits. */
export const atOnce: Turns = {
  run: (work, _, next) => {
    work();
    next?.();
  },
  begin: (work) => {
    while (work());
  },
};
