import { fromCallback, fromPromise } from 'xstate';

/**
 * An effect that a machine names and types and the program provides (`machine.provide({ actors })`). A machine that is
 * started without its effects fails at once and says which one is missing.
 */
export function promiseEffect<Output, Input>(name: string) {
  return fromPromise<Output, Input>(() => Promise.reject(new Error(`effect ${name} was not provided`)));
}

/** As {@link promiseEffect}, for effects that live on: they take orders and report facts. */
export function callbackEffect<Order extends { type: string }, Input>(name: string) {
  return fromCallback<Order, Input>(() => {
    throw new Error(`effect ${name} was not provided`);
  });
}

/** What an effect's failure tells people, in one line. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
