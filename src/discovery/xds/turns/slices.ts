import { AsyncLocalStorage } from 'node:async_hooks';
import { throwUncaught } from '../../../runtime/fences/uncaught.ts';

/**
 * Time in an iteration of the event loop for all {@link SliceScheduler} together. Requests, ACKs and health checks are received between iterations,
 * and a push takes about five iterations.
 */
export const maxSliceMs = 3;

/** Share of urgent slices while others have work. */
const urgentShare = 0.5;

/**
 * Maximum bytes written to sockets in one iteration of the event loop. The kernel copies them at its end, which takes a few milliseconds that no
 * slice measures.
 */
const maxTurnBytes = 2 * 1024 * 1024;

/** Bytes written to all sockets, because there is one event loop. */
let socketBytes = 0;

export function countSocketBytes(bytes: number): void {
  if (socketBytes === 0) {
    setImmediate(() => {
      socketBytes = 0;
    });
  }
  socketBytes += bytes;
}

/** If true, further writes must wait for a later iteration of the event loop. */
export function isTurnFull(): boolean {
  return socketBytes >= maxTurnBytes;
}

/** Start of the first small work in this iteration of the event loop. */
let turnStartedAt: number | undefined;

/** Whether there is time for small work that does not wait for a slice. */
export function hasTurnTime(): boolean {
  const now = performance.now();
  if (turnStartedAt === undefined) {
    turnStartedAt = now;
    setImmediate(() => {
      turnStartedAt = undefined;
    });
  }
  return now - turnStartedAt < maxSliceMs && !isTurnFull();
}

/** All {@link SliceScheduler} with work, in the order in which they run. Those that had no time in an iteration run first in the next one. */
const activeSlices = new Set<SliceScheduler>();
let isTurnScheduled = false;
/** A turn belongs to no stream, so an error in it must not end the stream that has scheduled it. */
const withoutOwner = AsyncLocalStorage.snapshot();

function scheduleTurn(): void {
  if (isTurnScheduled || activeSlices.size === 0) return;
  isTurnScheduled = true;
  withoutOwner(setImmediate, runTurn);
}

function runTurn(): void {
  isTurnScheduled = false;
  const turnEndsAt = performance.now() + maxSliceMs;
  const inOrder = [...activeSlices].toSorted((a, b) => Number(b.isUrgent) - Number(a.isUrgent));
  for (const [i, slices] of inOrder.entries()) {
    if (!activeSlices.has(slices)) continue;
    const now = performance.now();
    const share = inOrder.length > 1 && slices.isUrgent ? urgentShare : 1 / (inOrder.length - i);
    slices.runSlice(now + (turnEndsAt - now) * share);
    if (performance.now() >= turnEndsAt || isTurnFull()) break;
  }
  scheduleTurn();
}

export class SliceScheduler {
  readonly isUrgent: boolean;
  readonly #runStep: () => boolean;
  /** Number of starts and stops. */
  #changes = 0;

  /**
   * @param runStep runs some work, possibly none, and returns whether there is more. Errors are reported as uncaught, and other work continues.
   * @param isUrgent whether it runs before other slices in each iteration of the event loop
   */
  constructor(runStep: () => boolean, isUrgent = false) {
    this.#runStep = runStep;
    this.isUrgent = isUrgent;
  }

  /** The first slice runs asynchronously. Does nothing if slices are running. */
  start(): void {
    if (activeSlices.has(this)) return;
    this.#changes++;
    activeSlices.add(this);
    scheduleTurn();
  }

  stop(): void {
    this.#changes++;
    activeSlices.delete(this);
  }

  /** Runs at least one step. Called only by the turn of the event loop. */
  runSlice(deadline: number): void {
    const changesBefore = this.#changes;
    let hasMore = true;
    try {
      do hasMore = this.#runStep();
      while (hasMore && this.#changes === changesBefore && performance.now() < deadline && !isTurnFull());
    } catch (error) {
      // Continues in a later iteration, so that repeated errors do not block other tasks.
      throwUncaught(error);
    }
    // The step may have stopped the work, and started it again.
    if (this.#changes !== changesBefore) return;
    activeSlices.delete(this);
    if (hasMore) activeSlices.add(this);
  }
}
