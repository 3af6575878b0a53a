/** Shares the event loop between requests and other work. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { throwUncaught } from '../../../runtime/fences/uncaught.ts';
import { hasTurnTime, SliceScheduler } from '../turns/slices.ts';

/** A stream pauses after a longer request. */
const maxRequestMs = 5;
/** The pause as a multiple of the duration of the request. */
const pauseFactor = 3;
/** Larger requests always wait in the queue, because they may be slow. */
const largeBytes = 32 * 1024;
/** Every fourth step is one of new clients. */
const turnOfNew = 4;

/** Returns whether there are more steps. An error ends the work. */
export type SteppedWork = () => boolean;

export interface WorkTurns {
  /**
   * Runs small work immediately if there is time, otherwise from the queue. Errors are reported as uncaught.
   *
   * @param next called when the client may cause further work; delayed after slow work
   * @param isServed whether the client has acknowledged a response: its work precedes that of new clients
   */
  run(task: () => void, bytes: number, next?: () => void, isServed?: boolean): void;
  /** Runs work in steps, alternating with other work. */
  startWork(steppedWork: SteppedWork, isServed?: boolean): void;
}

/**
 * Queue for all streams of a server. Work of served clients comes first: when thousands of clients connect, their requests would otherwise delay the
 * ACKs of served clients, and so the next pushes to them.
 */
export class RequestTurns implements WorkTurns {
  readonly #served = new RoundRobin();
  readonly #new = new RoundRobin();
  readonly #slices = new SliceScheduler(() => this.#runSlice());
  #stepCount = 0;

  run(task: () => void, bytes: number, next?: () => void, isServed = false): void {
    const isNext = isServed ? this.#served.size === 0 : this.size === 0;
    if (bytes <= largeBytes && isNext && hasTurnTime()) {
      runAndPause(task, next);
      return;
    }
    this.startWork(() => {
      runAndPause(task, next);
      return false;
    }, isServed);
  }

  startWork(steppedWork: SteppedWork, isServed = false): void {
    // Keeps the owner's asynchronous context, so that an uncaught error closes the owner's stream.
    const runInContext = AsyncLocalStorage.snapshot();
    (isServed ? this.#served : this.#new).add(() => runInContext(runStepGuarded, steppedWork));
    this.#slices.start();
  }

  stop(): void {
    this.#slices.stop();
    this.#served.clear();
    this.#new.clear();
  }

  get size(): number {
    return this.#served.size + this.#new.size;
  }

  #runSlice(): boolean {
    const order = [this.#served, this.#new];
    if (++this.#stepCount % turnOfNew === 0) order.reverse();
    order.find(({ size }) => size > 0)?.runStep();
    return this.size > 0;
  }
}

/** Uses two lists, because removing the first element of a long list takes time in proportion to its length. */
class RoundRobin {
  #waitingWork: SteppedWork[] = [];
  /** Work that has completed its step in this round. */
  #next: SteppedWork[] = [];

  get size(): number {
    return this.#waitingWork.length + this.#next.length;
  }

  add(work: SteppedWork): void {
    this.#next.push(work);
  }

  clear(): void {
    this.#waitingWork = [];
    this.#next = [];
  }

  runStep(): void {
    if (this.#waitingWork.length === 0) {
      this.#waitingWork = this.#next.reverse();
      this.#next = [];
    }
    const work = this.#waitingWork.pop();
    if (work?.() === true) this.#next.push(work);
  }
}

function runStepGuarded(steppedWork: SteppedWork): boolean {
  try {
    return steppedWork();
  } catch (error) {
    throwUncaught(error);
    return false;
  }
}

function runAndPause(task: () => void, next: (() => void) | undefined): void {
  const startedAt = performance.now();
  try {
    task();
  } catch (error) {
    throwUncaught(error);
  }
  const elapsedMs = performance.now() - startedAt;
  if (next === undefined) return;
  if (elapsedMs <= maxRequestMs) next();
  else setTimeout(next, elapsedMs * pauseFactor);
}

export const immediateTurns: WorkTurns = {
  run: (task, _, next) => {
    task();
    next?.();
  },
  startWork: (steppedWork) => {
    while (steppedWork());
  },
};
