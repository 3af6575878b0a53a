/** What generators made before. Whoever calls them brings the memory; they stay pure: with or without it they make the same. */
import type { ConfigKey } from '../../model/config/config.ts';

export type RememberedType = 'CDS' | 'EDS' | 'LDS' | 'RDS' | 'SDS' | 'ECDS' | 'NDS';

export interface Memory {
  /**
   * What was made under a key from the very same inputs; else it is made now.
   *
   * @param key tells apart what is wanted at the same time: names of the thing, what of a shape it depends on.
   * @param inputs everything else that it is made from, compared by identity. So nothing that is out of date is ever
   *   given out, whichever context asks.
   * @param make is given what there was under the key before, made from other inputs, if it is known: a starting point, of
   *   which nothing may be taken that the inputs do not say.
   */
  recall<T extends { readonly dependsOn: readonly ConfigKey[] }>(
    type: RememberedType,
    key: string,
    inputs: readonly unknown[],
    make: (before: T | undefined) => T,
  ): T;
  /** What was made last under a key, from whatever inputs: as what `make` of {@link Memory.recall} is given. */
  latest(type: RememberedType, key: string): unknown;
}

/** A memory that remembers nothing, for whoever asks once. */
export const noMemory: Memory = { recall: (_type, _key, _inputs, make) => make(undefined), latest: () => undefined };
