/** Effects of the chart `push`. */
import { fromPromise } from 'xstate';
import { type PublishedContext, pushMachine } from '../../../machines/discovery/push/push.machine.ts';

export interface ContextOrder {
  readonly forced: boolean;
  /** Keys of objects that changed. */
  readonly configs: string[];
}

export function pushWithEffects(buildContext: (order: ContextOrder) => Promise<PublishedContext>) {
  return pushMachine.provide({
    actors: {
      buildContext: fromPromise<PublishedContext, { forced: boolean; configs: string[] }>(({ input }) =>
        buildContext(input),
      ),
    },
  });
}
