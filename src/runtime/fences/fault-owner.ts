/** The owner of the current work: an error that escapes the work ends its owner only. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** A stream or a request. */
export interface FaultOwner {
  /** For the log. */
  readonly name: string;
  /** Ends the owner. May be called more than once, and after its end. */
  fail(error: unknown): void;
}

const owners = new AsyncLocalStorage<FaultOwner>();

/** Runs a task on behalf of an owner, with all that it starts: promises, timers, further callbacks. */
export function onBehalfOf<T>(owner: FaultOwner, task: () => T): T {
  return owners.run(owner, task);
}

/**
 * The owner of the current work. In a handler of {@link catchUncaught}: the owner of the work that raised the error.
 */
export function faultOwner(): FaultOwner | undefined {
  return owners.getStore();
}
