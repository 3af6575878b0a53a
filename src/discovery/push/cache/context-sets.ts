/** The lists of each context, by type, shape and names. Those of a context without readers are collected. */
import { HeldKeys } from '../../../model/collections/held-keys.ts';
import { WeakValues } from '../../../model/collections/weak-values.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { NameList } from './name-list.ts';
import { fewSets, isInUse, keep, type ResourceSet, type ResourceSets } from './resource-sets.ts';
import type { WholeListMaking } from './whole-list-making.ts';

export class ContextSets {
  readonly #keeps: (typeUrl: string) => boolean;
  readonly #sets = new WeakMap<PushContext, ResourceSets>();
  readonly #shapeKeys = new WeakMap<ProxyShape, number>();
  #lastShapeKey = 0;
  /** Sets of the latest context. */
  #latest: WeakRef<ResourceSets> | undefined;
  /** Sets of shapes and names that nobody has any more, by key: their lists may be large. */
  readonly #holders = new HeldKeys((key) => {
    const byKey = this.#latest?.deref()?.byKey;
    const set = byKey?.get(key);
    // Another set may have come in the place of this one.
    if (set !== undefined && !isInUse(set)) byKey?.delete(key);
  });

  /** @param keeps whether sets of a type are kept */
  constructor(keeps: (typeUrl: string) => boolean) {
    this.#keeps = keeps;
  }

  /** Sets of the latest context. */
  get latest(): Iterable<ResourceSet> {
    return this.#latest?.deref()?.byKey.values() ?? [];
  }

  known(context: PushContext): ResourceSets | undefined {
    return this.#sets.get(context);
  }

  delete(context: PushContext): void {
    this.#sets.delete(context);
  }

  set(context: PushContext, typeUrl: string, shape: ProxyShape, names: NameList | undefined): ResourceSet {
    const sets = this.of(context);
    const key = this.key(typeUrl, shape, names);
    const known = sets.byKey.get(key);
    if (known !== undefined) return known;
    const set: ResourceSet = {
      typeUrl,
      shape: new WeakRef(shape),
      names: names && new WeakRef(names),
      list: undefined,
      base: undefined,
      baseOf: 0,
      reachChanged: false,
    };
    if (!this.#keeps(typeUrl)) return set;
    keep(sets, key, set);
    this.#holders.hold(key, names === undefined ? [shape] : [shape, names]);
    return set;
  }

  of(context: PushContext, makesAhead = true): ResourceSets {
    let sets = this.#sets.get(context);
    if (sets === undefined) {
      sets = {
        ...{ byKey: new Map(), sweepAt: fewSets, lists: new WeakValues(), makings: new WeakValues() },
        ...{ makesAhead, ahead: new Map(), wholeMakings: new WeakValues<WholeListMaking>() },
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
