import { fromCallback, fromPromise } from 'xstate';

/** A machine without one of its effects (`machine.provide({ actors })`) fails when it starts, with the name of the effect. */
export function promiseEffect<Output, Input>(name: string) {
  return fromPromise<Output, Input>(() => Promise.reject(new Error(`effect ${name} was not provided`)));
}

/** For effects that run until they are stopped: they receive orders and send events. */
export function callbackEffect<Order extends { type: string }, Input>(name: string) {
  return fromCallback<Order, Input>(() => {
    throw new Error(`effect ${name} was not provided`);
  });
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
