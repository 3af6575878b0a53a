/** Sets of an unused context are garbage-collected. */
import { HeldKeys } from '../../../model/collections/held-keys.ts';
import { WeakValues } from '../../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { NameList } from './name-list.ts';
import { addSet, type CachedSet, type CachedSets, isSetInUse, minSweptSets } from './resource-sets.ts';
import type { WholeListBuild } from './whole-list-build.ts';

export class ContextSets {
  readonly #isTypeCached: (typeUrl: string) => boolean;
  readonly #sets = new WeakMap<PushContext, CachedSets>();
  readonly #shapeKeys = new WeakMap<ProxyShape, number>();
  #lastShapeKey = 0;
  #latest: WeakRef<CachedSets> | undefined;
  readonly #setReferences = new HeldKeys((key) => {
    const setsByKey = this.#latest?.deref()?.byKey;
    const set = setsByKey?.get(key);
    // The key may refer to a newer set.
    if (set !== undefined && !isSetInUse(set)) setsByKey?.delete(key);
  });

  constructor(isTypeCached: (typeUrl: string) => boolean) {
    this.#isTypeCached = isTypeCached;
  }

  get latestSets(): Iterable<CachedSet> {
    return this.#latest?.deref()?.byKey.values() ?? [];
  }

  cachedSetsOf(context: PushContext): CachedSets | undefined {
    return this.#sets.get(context);
  }

  delete(context: PushContext): void {
    this.#sets.delete(context);
  }

  set(context: PushContext, typeUrl: string, shape: ProxyShape, names: NameList | undefined): CachedSet {
    const sets = this.setsOf(context);
    const key = this.key(typeUrl, shape, names);
    const cachedSet = sets.byKey.get(key);
    if (cachedSet !== undefined) return cachedSet;
    const set: CachedSet = {
      typeUrl,
      shape: new WeakRef(shape),
      names: names && new WeakRef(names),
      list: undefined,
      base: undefined,
      baseOf: 0,
      visibilityChanged: false,
    };
    if (!this.#isTypeCached(typeUrl)) return set;
    addSet(sets, key, set);
    this.#setReferences.add(key, names === undefined ? [shape] : [shape, names]);
    return set;
  }

  setsOf(context: PushContext, isBuiltAhead = true): CachedSets {
    let sets = this.#sets.get(context);
    if (sets === undefined) {
      sets = {
        ...{ byKey: new Map(), sweepAt: minSweptSets, lists: new WeakValues(), builds: new WeakValues() },
        ...{ buildsAhead: isBuiltAhead, aheadBuilds: new Map(), wholeBuilds: new WeakValues<WholeListBuild>() },
      };
      this.#sets.set(context, sets);
      this.#latest = new WeakRef(sets);
    }
    return sets;
  }

  key(typeUrl: string, shape: ProxyShape, names: NameList | undefined): string {
    return `${typeUrl} ${this.#shapeKey(shape)} ${names?.key ?? ''}`;
  }

  #shapeKey(shape: ProxyShape): number {
    let key = this.#shapeKeys.get(shape);
    if (key === undefined) {
      key = ++this.#lastShapeKey;
      this.#shapeKeys.set(shape, key);
    }
    return key;
  }
}
