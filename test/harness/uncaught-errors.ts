import { onTestFinished } from 'vitest';
import { faultOwner } from '../../src/runtime/fences/fault-owner.ts';
import { catchUncaught } from '../../src/runtime/fences/uncaught.ts';

export interface UncaughtError {
  readonly error: unknown;
  /** Name of the work that raised it. */
  readonly owner: string | undefined;
}

/**
 * Collects errors that escape during a test and would otherwise fail it: installs the program's last-resort handler instead of the test runner's. An
 * error's owner fails with it.
 */
export function uncaughtErrors(): readonly UncaughtError[] {
  const caughtErrors: UncaughtError[] = [];
  const events = ['uncaughtException', 'unhandledRejection'] as const;
  const previous = events.map((event) => process.listeners(event as 'exit'));
  for (const event of events) process.removeAllListeners(event);
  const undo = catchUncaught((error) => {
    caughtErrors.push({ error, owner: faultOwner()?.name });
    faultOwner()?.fail(error);
  });
  onTestFinished(() => {
    undo();
    events.forEach((event, i) => {
      for (const listener of previous[i]!) process.on(event as 'exit', listener);
    });
  });
  return caughtErrors;
}
