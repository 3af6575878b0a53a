import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/runtime/errors.ts';

export interface EventuallyOptions {
  readonly deadlineMs?: number;
  /** Unless given, 25 and more the longer it takes: a twentieth of the time that has gone, 200 at the most. */
  readonly everyMs?: number;
  /** Asked after each try that gave nothing; a reason ends the wait early. */
  readonly hopeless?: () => string | undefined;
}

/** What comes at all has come by then; a test has time for some such waits, so that this is what is told and not the test's own limit. */
export const patienceMs = 90_000;

/**
 * Tries until a try gives something (neither undefined nor false) without throwing.
 *
 * @param what the condition in words, for the error: "v2 answers through the gateway".
 * @throws Error with the last try's own error as its cause, when the deadline is over. By default it is 90 s, for machines that
 *   do many other things, or run at half their speed: what must not take so long says so.
 */
export async function eventually<Value>(
  what: string,
  attempt: () => Promise<Value | undefined | false> | Value | undefined | false,
  { deadlineMs = patienceMs, everyMs, hopeless }: EventuallyOptions = {},
): Promise<Value> {
  const begun = performance.now();
  const deadline = begun + deadlineMs;
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
    if (reason !== undefined) throw new Error(`waited for: ${what}; but ${reason}`);
    await sleep(everyMs ?? Math.min(200, Math.max(25, (performance.now() - begun) / 20)));
  } while (performance.now() < deadline);
  const why = last === undefined ? '' : `: ${messageOf(last)}`;
  throw new Error(`waited ${deadlineMs} ms in vain for: ${what}${why}`, { cause: last });
}

/** Tries until an assertion does not throw: as {@link eventually}, with a deadline for machines that do other things as well. */
export async function eventuallyHolds(assertion: () => void): Promise<void> {
  const holds = (): true => {
    assertion();
    return true;
  };
  await eventually('what is asserted', holds, { everyMs: 5 });
}
