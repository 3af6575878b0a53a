import type { WeakValues } from '../../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { AheadBuild } from './ahead-build.ts';
import type { ListBuild, ResourceMap } from './list-build.ts';
import type { NameList } from './name-list.ts';
import type { WholeListBuild } from './whole-list-build.ts';

/** Resources of a type for a shape (and a list of names), in one or several contexts. */
export interface CachedSet {
  readonly typeUrl: string;
  /** Weak reference, so that a set without proxies is not reused. */
  readonly shape: WeakRef<ProxyShape>;
  readonly names: WeakRef<NameList> | undefined;
  list: ResourceMap | undefined;
  /** List of an earlier context, and the number of that context in the history. */
  readonly base: ResourceMap | undefined;
  readonly baseOf: number;
  readonly visibilityChanged: boolean;
}

export interface CachedSets {
  readonly byKey: Map<string, CachedSet>;
  /** Number of sets at which unused ones are removed. */
  sweepAt: number;
  /** Lists that are reused when a client adds a name to its subscription. */
  readonly lists: WeakValues<ResourceMap>;
  /** Whether too much has changed to build a list in one step. */
  readonly buildsAhead: boolean;
  /** Builds by type and by the part of proxies on which they depend. */
  readonly aheadBuilds: Map<string, AheadBuild>;
  readonly builds: WeakValues<ListBuild>;
  readonly wholeBuilds: WeakValues<WholeListBuild>;
}

export const minSweptSets = 1_000;

/** Number of contexts for which an unused list remains a base. */
const maxLag = 256;

export function isSetInUse({ shape, names }: CachedSet): boolean {
  return shape.deref() !== undefined && (names === undefined || names.deref() !== undefined);
}

/** Removes unused sets, because clients may change subscriptions within one context. */
export function addSet(sets: CachedSets, key: string, set: CachedSet): void {
  const { byKey } = sets;
  if (byKey.size >= sets.sweepAt) {
    for (const [other, unused] of byKey) if (!isSetInUse(unused)) byKey.delete(other);
    sets.sweepAt = Math.max(minSweptSets, 2 * byKey.size);
  }
  byKey.set(key, set);
}

/** Returns the set for the next context. Its base is the list of this set, or otherwise the base of this set. */
export function outdatedSet(set: CachedSet, number: number, changesVisibility: () => boolean): CachedSet | undefined {
  const isNamed = set.names !== undefined;
  if (set.list !== undefined) {
    return {
      ...set,
      list: undefined,
      base: set.list,
      baseOf: number,
      visibilityChanged: isNamed && changesVisibility(),
    };
  }
  if (set.base === undefined || number - set.baseOf >= maxLag) return undefined;
  return { ...set, visibilityChanged: set.visibilityChanged || (isNamed && changesVisibility()) };
}
