import type { WeakValues } from '../../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { AheadBuild } from './ahead-build.ts';
import type { ListBuild, ResourceMap } from './list-build.ts';
import type { NameList } from './name-list.ts';
import type { WholeListBuild } from './whole-list-build.ts';

/** The resources of a type for a shape (and a list of names), in one context or in all contexts that share the set. */
export interface CachedSet {
  readonly typeUrl: string;
  /** Weak: a set without proxies is not carried over. */
  readonly shape: WeakRef<ProxyShape>;
  readonly names: WeakRef<NameList> | undefined;
  list: ResourceMap | undefined;
  /** The list of an earlier context, and the number of that context in the history. */
  readonly base: ResourceMap | undefined;
  readonly baseOf: number;
  /** A later context changed the visible services. */
  readonly visibilityChanged: boolean;
}

export interface CachedSets {
  readonly byKey: Map<string, CachedSet>;
  /** Number of sets at which unused ones are removed. */
  sweepAt: number;
  /** A client that adds a name to its subscription reuses these resources. */
  readonly lists: WeakValues<ResourceMap>;
  /** Too much has changed to build a list in one step. */
  readonly buildsAhead: boolean;
  /** By type and the part of a proxy that they depend on. */
  readonly ahead: Map<string, AheadBuild>;
  readonly builds: WeakValues<ListBuild>;
  readonly wholeBuilds: WeakValues<WholeListBuild>;
}

export const minSweptSets = 1_000;

/** An unused list stays a base for this many contexts. */
const maxLag = 256;

export function isInUse({ shape, names }: CachedSet): boolean {
  return shape.deref() !== undefined && (names === undefined || names.deref() !== undefined);
}

/** Removes unused sets, because clients may change their subscriptions without a new context. */
export function addSet(sets: CachedSets, key: string, set: CachedSet): void {
  const { byKey } = sets;
  if (byKey.size >= sets.sweepAt) {
    for (const [other, unused] of byKey) if (!isInUse(unused)) byKey.delete(other);
    sets.sweepAt = Math.max(minSweptSets, 2 * byKey.size);
  }
  byKey.set(key, set);
}

/** The set for the next context, with this list or its base as base. */
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
