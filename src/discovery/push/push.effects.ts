import { fromPromise } from 'xstate';
import { type PublishedContext, pushMachine } from '../../../machines/discovery/push/push.machine.ts';
import type { MeshState } from './contexts/mesh-state.ts';

/** @param onPublished receives the milliseconds from order to context */
export function pushWithEffects(state: Pick<MeshState, 'publishContextInTurns'>, onPublished: (ms: number) => void) {
  return pushMachine.provide({
    actors: {
      buildContext: fromPromise<PublishedContext, { forced: boolean; configs: string[] }>(async ({ input }) => {
        const start = performance.now();
        const { version } = await state.publishContextInTurns({ forced: input.forced, changedKeys: input.configs });
        const publishedAt = Date.now();
        onPublished(performance.now() - start);
        return { version, publishedAt };
      }),
    },
  });
}
