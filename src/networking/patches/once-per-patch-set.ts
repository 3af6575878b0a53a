/** Caches results of patches while both the patched object and the patch set exist. */
import type { PatchSet } from './patch-set.ts';

const cache = new WeakMap<object, WeakMap<PatchSet, Map<string, unknown>>>();

/**
 * Computes a value once for an object and a patch set, so that users of the object share the value.
 *
 * @param key all other inputs
 */
export function oncePerPatchSet<T>(subject: object, patches: PatchSet, key: string, compute: () => T): T {
  const bySet = cache.get(subject) ?? new WeakMap<PatchSet, Map<string, unknown>>();
  cache.set(subject, bySet);
  const byKey = bySet.get(patches) ?? new Map<string, unknown>();
  bySet.set(patches, byKey);
  if (!byKey.has(key)) byKey.set(key, compute());
  return byKey.get(key) as T;
}
