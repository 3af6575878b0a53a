import { onTestFinished } from 'vitest';
import { faultOwner } from '../../src/runtime/fences/fault-owner.ts';
import { catchUncaught } from '../../src/runtime/fences/uncaught.ts';

export interface UncaughtError {
  readonly error: unknown;
  /** Whose work let it out. */
  readonly owner: string | undefined;
}

/**
 * What escapes during a test, which would fail it otherwise: the program's last fence in the place of the test runner's.
 * Owners are made to pay.
 */
export function uncaughtErrors(): readonly UncaughtError[] {
  const caught: UncaughtError[] = [];
  const events = ['uncaughtException', 'unhandledRejection'] as const;
  const before = events.map((event) => process.listeners(event as 'exit'));
  for (const event of events) process.removeAllListeners(event);
  const undo = catchUncaught((error) => {
    caught.push({ error, owner: faultOwner()?.name });
    faultOwner()?.fail(error);
  });
  onTestFinished(() => {
    undo();
    events.forEach((event, i) => {
      for (const listener of before[i]!) process.on(event as 'exit', listener);
    });
  });
  return caught;
}
