/** Caches patched objects while both object and patch set exist. */
import type { PatchSet } from './patch-set.ts';

const cache = new WeakMap<object, WeakMap<PatchSet, Map<string, unknown>>>();

/** @param key identifies all other inputs */
export function memoizeByPatchSet<T>(subject: object, patches: PatchSet, key: string, compute: () => T): T {
  const resultsBySet = cache.get(subject) ?? new WeakMap<PatchSet, Map<string, unknown>>();
  cache.set(subject, resultsBySet);
  const resultsByKey = resultsBySet.get(patches) ?? new Map<string, unknown>();
  resultsBySet.set(patches, resultsByKey);
  if (!resultsByKey.has(key)) resultsByKey.set(key, compute());
  return resultsByKey.get(key) as T;
}
