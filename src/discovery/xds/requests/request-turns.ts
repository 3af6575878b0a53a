/** Shares the event loop between requests and other work. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { letEscape } from '../../../runtime/fences/uncaught.ts';
import { isTurnFull, Slices } from '../turns/slices.ts';

/** Maximum time for requests in an iteration of the event loop. */
const turnMs = 5;
/** After a longer request, its stream pauses for this multiple of its duration. */
const restFactor = 3;
/** Larger requests always wait in the queue, because they may be slow. */
const largeBytes = 32 * 1024;

/** Returns whether there are more steps. An error ends the work. */
export type SteppedWork = () => boolean;

export interface WorkTurns {
  /**
   * Runs small work immediately if there is time, otherwise from the queue. Errors are reported as uncaught.
   *
   * @param next called when the client may cause further work; delayed after slow work
   */
  run(work: () => void, bytes: number, next?: () => void): void;
  /** Runs work in steps, alternating with other work. */
  startWork(work: SteppedWork): void;
}

export class RequestTurns implements WorkTurns {
  #waitingWork: SteppedWork[] = [];
  /** Work that has completed its step in this round. */
  #next: SteppedWork[] = [];
  readonly #slices = new Slices(() => this.#runSlice());
  #turnStartedAt: number | undefined;
  #turnEndImmediate: NodeJS.Immediate | undefined;

  run(work: () => void, bytes: number, next?: () => void): void {
    if (bytes <= largeBytes && this.#isIdle && this.#hasTime()) {
      doAndRest(work, next);
      return;
    }
    this.startWork(() => {
      doAndRest(work, next);
      return false;
    });
  }

  startWork(work: SteppedWork): void {
    // Keeps the asynchronous context, so that an uncaught error closes the stream that caused it.
    const inOwnName = AsyncLocalStorage.snapshot();
    this.#next.push(() => inOwnName(fenced, work));
    this.#slices.start();
  }

  stop(): void {
    this.#slices.stop();
    if (this.#turnEndImmediate !== undefined) clearImmediate(this.#turnEndImmediate);
    this.#waitingWork = [];
    this.#next = [];
  }

  get size(): number {
    return this.#waitingWork.length + this.#next.length;
  }

  get #isIdle(): boolean {
    return this.size === 0;
  }

  #hasTime(): boolean {
    const now = performance.now();
    if (this.#turnStartedAt === undefined) {
      this.#turnStartedAt = now;
      this.#turnEndImmediate = setImmediate(() => {
        this.#turnStartedAt = undefined;
      });
    }
    return now - this.#turnStartedAt < turnMs && !isTurnFull();
  }

  /** Uses two lists, because removing the first element of a long list would take time in proportion to its length. */
  #runSlice(): boolean {
    if (this.#waitingWork.length === 0) {
      this.#waitingWork = this.#next.reverse();
      this.#next = [];
    }
    const work = this.#waitingWork.pop();
    if (work?.() === true) this.#next.push(work);
    return !this.#isIdle;
  }
}

function fenced(work: SteppedWork): boolean {
  try {
    return work();
  } catch (error) {
    letEscape(error);
    return false;
  }
}

function doAndRest(work: () => void, next: (() => void) | undefined): void {
  const startedAt = performance.now();
  try {
    work();
  } catch (error) {
    letEscape(error);
  }
  const tookMs = performance.now() - startedAt;
  if (next === undefined) return;
  if (tookMs <= turnMs) next();
  else setTimeout(next, tookMs * restFactor);
}

/** Runs everything immediately, for tests. */
export const immediateTurns: WorkTurns = {
  run: (work, _, next) => {
    work();
    next?.();
  },
  startWork: (work) => {
    while (work());
  },
};
