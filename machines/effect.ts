import { fromCallback, fromPromise } from 'xstate';

/**
 * Declares an effect that the program provides (`machine.provide({ actors })`). A machine without one of its effects fails when it starts, with the
 * name of the effect.
 */
export function promiseEffect<Output, Input>(name: string) {
  return fromPromise<Output, Input>(() => Promise.reject(new Error(`effect ${name} was not provided`)));
}

/** Like {@link promiseEffect}, for effects that run until they are stopped: they receive orders and send events. */
export function callbackEffect<Order extends { type: string }, Input>(name: string) {
  return fromCallback<Order, Input>(() => {
    throw new Error(`effect ${name} was not provided`);
  });
}

/** Message of an error in one line. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
