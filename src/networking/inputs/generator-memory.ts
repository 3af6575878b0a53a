/** Cache for generators, whose results are the same without it. */
import type { ConfigKey } from '../../model/config/config.ts';

export type CachedType = 'CDS' | 'EDS' | 'LDS' | 'RDS' | 'SDS' | 'ECDS' | 'NDS';

export interface Memory {
  /**
   * Returns the cached value if its inputs are unchanged, otherwise builds it.
   *
   * @param key distinguishes values that are cached at the same time, by resource name and shape properties
   * @param inputs all other inputs, compared by identity, so that an outdated value is never returned
   * @param build receives the previous value of the key, and may reuse only parts whose inputs are unchanged
   */
  getOrBuild<T extends { readonly dependsOn: readonly ConfigKey[] }>(
    type: CachedType,
    key: string,
    inputs: readonly unknown[],
    build: (previous: T | undefined) => T,
  ): T;
  latestValue(type: CachedType, key: string): unknown;
}

export const noMemory: Memory = {
  getOrBuild: (_type, _key, _inputs, build) => build(undefined),
  latestValue: () => undefined,
};
