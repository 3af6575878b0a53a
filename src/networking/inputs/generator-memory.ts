/** Cache of generators. Callers provide it, and generators stay pure: the results are the same without a cache. */
import type { ConfigKey } from '../../model/config/config.ts';

export type RememberedType = 'CDS' | 'EDS' | 'LDS' | 'RDS' | 'SDS' | 'ECDS' | 'NDS';

export interface Memory {
  /**
   * Returns the cached value of a key if its inputs are the same, otherwise builds it.
   *
   * @param key distinguishes values that exist at the same time: resource names, properties of a shape
   * @param inputs all other inputs, compared by identity, so that no outdated value is returned
   * @param build receives the previous value of the key, which was built from other inputs, as a starting point. It may
   * only reuse parts that the inputs confirm.
   */
  recall<T extends { readonly dependsOn: readonly ConfigKey[] }>(
    type: RememberedType,
    key: string,
    inputs: readonly unknown[],
    build: (previous: T | undefined) => T,
  ): T;
  /** The last value of a key, whatever its inputs, as `build` of {@link Memory.recall} receives it. */
  latest(type: RememberedType, key: string): unknown;
}

/** Caches nothing, for single use. */
export const noMemory: Memory = { recall: (_type, _key, _inputs, build) => build(undefined), latest: () => undefined };
