/**
 * The last fence of a program: an error that nobody caught becomes a call, not the end of the process.
 *
 * Node ends a process whose error or rejection nobody heard. Each edge (request, stream, watcher, sink) has a fence of its
 * own; what still escapes arrives here, with the program's word on what to do: close what it came from, say so, go on.
 */
import { explainError } from '../errors.ts';
import type { EventOfLevel } from '../log-events/log-events.ts';
import type { Logger } from '../output/log.ts';

export type UncaughtOrigin = 'uncaughtException' | 'unhandledRejection';

/** Must not wait and should not throw: what it throws itself is lost, for it would end the process. */
export type UncaughtHandler = (error: unknown, origin: UncaughtOrigin) => void;

/** What Node's `process` is to this module; a test has its own. */
export interface UncaughtSource {
  on(event: UncaughtOrigin, listener: (error: unknown) => void): unknown;
  off(event: UncaughtOrigin, listener: (error: unknown) => void): unknown;
}

/**
 * From now on no uncaught error or unhandled rejection ends the process. Both come with the asynchronous context in
 * which they were thrown: an `AsyncLocalStorage` of the caller says whose they are.
 *
 * @returns undoes it
 */
export function catchUncaught(handle: UncaughtHandler, source: UncaughtSource = process): () => void {
  let handling = false;
  const caught = (error: unknown, origin: UncaughtOrigin): void => {
    // A handler whose own work raises the next one (a log whose pipe is broken) is not called from within itself.
    if (handling) return;
    handling = true;
    try {
      handle(error, origin);
    } catch {
      // Thrown from here, it would end the process.
    } finally {
      handling = false;
    }
  };
  const exception = (error: unknown): void => caught(error, 'uncaughtException');
  const rejection = (reason: unknown): void => caught(reason, 'unhandledRejection');
  source.on('uncaughtException', exception);
  source.on('unhandledRejection', rejection);
  return () => {
    source.off('uncaughtException', exception);
    source.off('unhandledRejection', rejection);
  };
}

/**
 * Hands an error to the last fence, in the name of whoever's work is being done, and returns: for what goes on with
 * others' work, which is not to end with one.
 */
export function letEscape(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

export interface FaultLogOptions {
  /** Lines an interval at most; 10 by default. */
  readonly maxLines?: number;
  /** One minute by default. */
  readonly intervalMs?: number;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

/**
 * Logs faults with their stacks, at most `maxLines` per interval: the first line of the next interval has the number of
 * those that were left out. This also ends the loop of a log that cannot be written and whose every line is the next fault.
 */
export function faultLog(
  log: Logger,
  event: EventOfLevel<'error'>,
  options: FaultLogOptions = {},
): (error: unknown, fields?: object) => void {
  const { maxLines = 10, intervalMs = 60_000, now = () => performance.now() } = options;
  let begin = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let leftOut = 0;
  return (error, fields = {}) => {
    const time = now();
    if (time - begin >= intervalMs) {
      begin = time;
      lines = 0;
    }
    if (lines === maxLines) {
      leftOut += 1;
      return;
    }
    lines += 1;
    const unsaid = leftOut;
    leftOut = 0;
    log.error(event, { ...fields, error: explainError(error), ...(unsaid > 0 && { leftOut: unsaid }) });
  };
}
