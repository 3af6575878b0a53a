/** What patches made of a thing, for as long as the thing and the patches are there. */
import type { PatchSet } from './patch-set.ts';

const made = new WeakMap<object, WeakMap<PatchSet, Map<string, unknown>>>();

/**
 * Made once of the very same thing with the very same patches, so that those who share the one share the other.
 *
 * @param key whatever else it depends on
 */
export function kept<T>(thing: object, patches: PatchSet, key: string, make: () => T): T {
  const bySet = made.get(thing) ?? new WeakMap<PatchSet, Map<string, unknown>>();
  made.set(thing, bySet);
  const byKey = bySet.get(patches) ?? new Map<string, unknown>();
  bySet.set(patches, byKey);
  if (!byKey.has(key)) byKey.set(key, make());
  return byKey.get(key) as T;
}
