/** An error that escapes the current work ends the owner of the work only. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** A stream or a request. */
export interface FaultOwner {
  readonly name: string;
  /** Ends the owner. May be called more than once, and after its end. */
  fail(error: unknown): void;
}

const owners = new AsyncLocalStorage<FaultOwner>();

export function runAsOwner<T>(owner: FaultOwner, task: () => T): T {
  return owners.run(owner, task);
}

/** In a handler of {@link catchUncaught}, returns the owner of the work that raised the error. */
export function faultOwner(): FaultOwner | undefined {
  return owners.getStore();
}
