import type { WeakValues } from '../../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { AheadBuild } from './ahead-build.ts';
import type { ListBuild, ResourceMap } from './list-build.ts';
import type { NameList } from './name-list.ts';
import type { WholeListBuild } from './whole-list-build.ts';

export interface CachedSet {
  readonly typeUrl: string;
  /** Weak reference, so that a set without proxies is not reused. */
  readonly shape: WeakRef<ProxyShape>;
  readonly names: WeakRef<NameList> | undefined;
  list: ResourceMap | undefined;
  /** `baseOf` is the number of the base's context in the history. */
  readonly base: ResourceMap | undefined;
  readonly baseOf: number;
  readonly visibilityChanged: boolean;
}

export interface CachedSets {
  readonly byKey: Map<string, CachedSet>;
  /** Unused sets are removed at this number of sets. */
  sweepAt: number;
  /** Lists that are reused when a client adds a name to its subscription. */
  readonly lists: WeakValues<ResourceMap>;
  readonly buildsAhead: boolean;
  readonly aheadBuilds: Map<string, AheadBuild>;
  readonly builds: WeakValues<ListBuild>;
  readonly wholeBuilds: WeakValues<WholeListBuild>;
}

export const minSweptSets = 1_000;

const maxContextLag = 256;

export function isSetInUse({ shape, names }: CachedSet): boolean {
  return shape.deref() !== undefined && (names === undefined || names.deref() !== undefined);
}

/** Clients may change subscriptions within one context, so unused sets are removed. */
export function addSet(sets: CachedSets, key: string, set: CachedSet): void {
  const { byKey } = sets;
  if (byKey.size >= sets.sweepAt) {
    for (const [other, unusedSets] of byKey) if (!isSetInUse(unusedSets)) byKey.delete(other);
    sets.sweepAt = Math.max(minSweptSets, 2 * byKey.size);
  }
  byKey.set(key, set);
}

/** The next base is the list of this set or, without one, its base. */
export function outdatedSet(
  set: CachedSet,
  number: number,
  hasVisibilityChanged: () => boolean,
): CachedSet | undefined {
  const hasNames = set.names !== undefined;
  if (set.list !== undefined) {
    return {
      ...set,
      list: undefined,
      base: set.list,
      baseOf: number,
      visibilityChanged: hasNames && hasVisibilityChanged(),
    };
  }
  if (set.base === undefined || number - set.baseOf >= maxContextLag) return undefined;
  return { ...set, visibilityChanged: set.visibilityChanged || (hasNames && hasVisibilityChanged()) };
}
