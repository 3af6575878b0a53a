import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/runtime/errors.ts';

export interface EventuallyOptions {
  readonly deadlineMs?: number;
  /** Milliseconds between attempts (default: a twentieth of the elapsed time, at least 25, at most 200). */
  readonly everyMs?: number;
  /** Called after each failed attempt; a reason ends the wait early. */
  readonly hopeless?: () => string | undefined;
}

/**
 * In milliseconds; longer than any expected wait, but short enough for several waits in a test, so that this error is reported instead of the test's
 * own timeout.
 */
export const defaultDeadlineMs = 90_000;

/**
 * Retries until an attempt returns a value (neither `undefined` nor `false`) without throwing.
 *
 * @param condition the condition in words, for the error, such as "v2 responds through the gateway"
 * @throws Error with the last attempt's error as its cause, after the deadline: by default 90 s, for busy machines
 */
export async function eventually<Value>(
  condition: string,
  attempt: () => Promise<Value | undefined | false> | Value | undefined | false,
  { deadlineMs = defaultDeadlineMs, everyMs, hopeless }: EventuallyOptions = {},
): Promise<Value> {
  const startedAt = performance.now();
  const deadline = startedAt + deadlineMs;
  let last: unknown;
  do {
    try {
      const value = await attempt();
      if (value !== undefined && value !== false) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    const reason = hopeless?.();
    if (reason !== undefined) throw new Error(`waited for: ${condition}; but ${reason}`);
    await sleep(everyMs ?? Math.min(200, Math.max(25, (performance.now() - startedAt) / 20)));
  } while (performance.now() < deadline);
  const reasonText = last === undefined ? '' : `: ${messageOf(last)}`;
  throw new Error(`waited ${deadlineMs} ms in vain for: ${condition}${reasonText}`, { cause: last });
}

/** Retries until an assertion does not throw, like {@link eventually}, with a deadline for busy machines. */
export async function eventuallyHolds(assertion: () => void): Promise<void> {
  const holds = (): true => {
    assertion();
    return true;
  };
  await eventually('what is asserted', holds, { everyMs: 5 });
}
