/** Whose work it is that is being done: an error that escapes it costs its owner, and nobody else. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** A stream or a request. */
export interface FaultOwner {
  /** For the log. */
  readonly name: string;
  /** Ends it. May be called more than once, and after its end. */
  fail(error: unknown): void;
}

const owners = new AsyncLocalStorage<FaultOwner>();

/** Does something in an owner's name; so is what it starts: promises, timers, further callbacks. */
export function onBehalfOf<T>(owner: FaultOwner, deed: () => T): T {
  return owners.run(owner, deed);
}

/** Whose work is being done. In a handler of {@link catchUncaught}: whose work let the error out. */
export function faultOwner(): FaultOwner | undefined {
  return owners.getStore();
}
