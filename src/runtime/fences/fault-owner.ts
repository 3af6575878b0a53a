/** The owner of the current work. An error that escapes the work ends its owner only. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** A stream or a request. */
export interface FaultOwner {
  /** For the log. */
  readonly name: string;
  /** Ends the owner. May be called more than once, and after its end. */
  fail(error: unknown): void;
}

const owners = new AsyncLocalStorage<FaultOwner>();

export function runAsOwner<T>(owner: FaultOwner, task: () => T): T {
  return owners.run(owner, task);
}

/** The owner of the current work; in a handler of {@link catchUncaught}, of the work that raised the error. */
export function faultOwner(): FaultOwner | undefined {
  return owners.getStore();
}
