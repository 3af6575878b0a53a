import type { BlockedAddresses } from '../../runtime/fences/blocked-addresses.ts';
import { guardedFetch } from '../../runtime/fences/guarded-fetch.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { jwksWithEffects } from './jwks.effects.ts';
import { KeySets } from './key-sets.ts';

export interface JwksParts {
  readonly addresses: BlockedAddresses;
  readonly policies: () => Parameters<KeySets['sourcesOf']>[0];
  readonly log: Logger;
}

export function makeJwks({ addresses, policies, log }: JwksParts) {
  const keySets = new KeySets(guardedFetch(addresses), (fields) => log.warn('issuers.limitExceeded', fields));
  return { keySets, actors: () => ({ jwks: jwksWithEffects(keySets, policies) }) };
}
