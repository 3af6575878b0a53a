import { fromPromise } from 'xstate';
import { type IssuerResponse, keySetMachine } from '../../../machines/discovery/jwks/key-set.machine.ts';
import type { KeySets } from './key-sets.ts';

export function keySetWithEffects(keySets: KeySets) {
  return keySetMachine.provide({
    actors: {
      fetchKeySet: fromPromise<IssuerResponse, { source: string; timeoutMs: number }>(({ input, signal }) =>
        keySets.fetchOutcome(input.source, input.timeoutMs, signal),
      ),
    },
  });
}
