/** Caches patched objects while both object and patch set exist. */
import type { PatchSet } from './patch-set.ts';

const cache = new WeakMap<object, WeakMap<PatchSet, Map<string, unknown>>>();

/** @param key identifies all other inputs */
export function oncePerPatchSet<T>(subject: object, patches: PatchSet, key: string, compute: () => T): T {
  const bySet = cache.get(subject) ?? new WeakMap<PatchSet, Map<string, unknown>>();
  cache.set(subject, bySet);
  const byKey = bySet.get(patches) ?? new Map<string, unknown>();
  bySet.set(patches, byKey);
  if (!byKey.has(key)) byKey.set(key, compute());
  return byKey.get(key) as T;
}
