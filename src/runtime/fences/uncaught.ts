/**
 * Each boundary (request, stream, watcher, sink) handles its errors. For an error that escapes all boundaries, the program's handler closes the
 * source of the error, reports the error, and continues.
 */
import { explainError } from '../errors.ts';
import type { EventOfLevel } from '../log-events/log-events.ts';
import type { Logger } from '../output/log.ts';

export type UncaughtOrigin = 'uncaughtException' | 'unhandledRejection';

/** Must not wait. Its own errors are lost, because they would end the process. */
export type UncaughtHandler = (error: unknown, origin: UncaughtOrigin) => void;

export interface UncaughtSource {
  on(event: UncaughtOrigin, listener: (error: unknown) => void): unknown;
  off(event: UncaughtOrigin, listener: (error: unknown) => void): unknown;
}

/**
 * Prevents uncaught errors and unhandled rejections from ending the process. Handlers run in the asynchronous context of the error, so an
 * `AsyncLocalStorage` contains its owner.
 */
export function catchUncaught(handle: UncaughtHandler, source: UncaughtSource = process): () => void {
  let isHandling = false;
  const onUncaught = (error: unknown, origin: UncaughtOrigin): void => {
    // A handler whose own work raises the next error (a log with a broken pipe) is not called recursively.
    if (isHandling) return;
    isHandling = true;
    try {
      handle(error, origin);
    } catch {
      // An error of the handler would end the process.
    } finally {
      isHandling = false;
    }
  };
  const onException = (error: unknown): void => onUncaught(error, 'uncaughtException');
  const onRejection = (reason: unknown): void => onUncaught(reason, 'unhandledRejection');
  source.on('uncaughtException', onException);
  source.on('unhandledRejection', onRejection);
  return () => {
    source.off('uncaughtException', onException);
    source.off('unhandledRejection', onRejection);
  };
}

/** Raises an error as uncaught on behalf of the current owner, and returns, so that a loop over the work of several owners continues if one fails. */
export function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

export interface FaultLogOptions {
  readonly maxLines?: number;
  /** Default: one minute. */
  readonly intervalMs?: number;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

/** The limit of lines also ends the loop of a log that cannot be written, in which every line raises the next fault. */
export function faultLog(
  log: Logger,
  event: EventOfLevel<'error'>,
  options: FaultLogOptions = {},
): (error: unknown, fields?: object) => void {
  const { maxLines = 10, intervalMs = 60_000, now = () => performance.now() } = options;
  let intervalStart = Number.NEGATIVE_INFINITY;
  let loggedLines = 0;
  let omittedLines = 0;
  return (error, fields = {}) => {
    const time = now();
    if (time - intervalStart >= intervalMs) {
      intervalStart = time;
      loggedLines = 0;
    }
    if (loggedLines === maxLines) {
      omittedLines += 1;
      return;
    }
    loggedLines += 1;
    const omittedCount = omittedLines;
    omittedLines = 0;
    log.error(event, { ...fields, error: explainError(error), ...(omittedCount > 0 && { leftOut: omittedCount }) });
  };
}
