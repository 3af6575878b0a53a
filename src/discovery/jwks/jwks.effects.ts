import { fromPromise } from 'xstate';
import { jwksMachine, type KeySource } from '../../../machines/discovery/jwks/jwks.machine.ts';
import { keySetWithEffects } from './key-set.effects.ts';
import type { KeySets } from './key-sets.ts';

export function jwksWithEffects(keySets: KeySets, policies: () => Parameters<KeySets['sourcesOf']>[0]) {
  return jwksMachine.provide({
    actors: {
      findKeySources: fromPromise<KeySource[], undefined>(async () => keySets.sourcesOf(policies())),
      keySet: keySetWithEffects(keySets),
    },
  });
}
