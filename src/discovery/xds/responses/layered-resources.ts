/**
 * A map of resources that is another with a few differences. Thousands of clusters that proxies of all namespaces have are
 * kept once, and what differs between two such maps is looked for in what they do not share.
 */
import { onceFor } from '../../../model/collections/once-for.ts';
import { identityText, WeakValues } from '../../../model/collections/weak-values.ts';
import type { EncodedResource } from '../resource-source.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

const layersOf = onceFor((_: ResourceMap) => new WeakValues<ResourceMap>());

/** Immutable. In the order of the other, then what is beside it. */
export class LayeredResources implements ResourceMap {
  readonly base: ResourceMap;
  /** Resources beside those of the base, or instead of them. */
  readonly own: ResourceMap;
  /** Names in the base that are not in this. */
  readonly without: ReadonlySet<string>;
  readonly size: number;

  private constructor(base: ResourceMap, own: ResourceMap, without: ReadonlySet<string>) {
    this.base = base;
    this.own = own;
    this.without = without;
    let { size } = base;
    for (const name of own.keys()) if (!base.has(name)) size++;
    this.size = size - without.size;
  }

  /**
   * The base itself where nothing is other than in it.
   *
   * @param own what of it is in the base counts for nothing
   * @param without none of them is in `own`
   * @param before given back if it is the same
   */
  static over(
    base: ResourceMap,
    own: Iterable<EncodedResource>,
    without: Iterable<string>,
    before?: ResourceMap,
  ): ResourceMap {
    const different = new Map([...own].filter((one) => base.get(one.name) !== one).map((one) => [one.name, one]));
    const left = new Set([...without].filter((name) => base.has(name)));
    if (different.size === 0 && left.size === 0) return base;
    const made = new LayeredResources(base, different, left);
    return before instanceof LayeredResources && before.#isSame(made) ? before : made;
  }

  /**
   * As {@link over}; streams for which the same differs from a base share one map, as long as one of them holds it: what follows from it is
   * worked out and encoded once.
   */
  static shared(base: ResourceMap, own: readonly EncodedResource[], without: readonly string[]): ResourceMap {
    if (own.length + without.length === 0) return base;
    const known = layersOf(base);
    const key = `${identityText(own)}\n${without.join('\n')}`;
    let layered = known.get(key);
    if (layered === undefined) {
      layered = LayeredResources.over(base, own, without);
      known.set(key, layered);
    }
    return layered;
  }

  #isSame({ base, own, without }: LayeredResources): boolean {
    if (this.base !== base || this.own.size !== own.size || this.without.size !== without.size) return false;
    return (
      [...own].every(([name, one]) => this.own.get(name) === one) &&
      [...without].every((name) => this.without.has(name))
    );
  }

  get(name: string): EncodedResource | undefined {
    return this.own.get(name) ?? (this.without.has(name) ? undefined : this.base.get(name));
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  *entries(): MapIterator<[string, EncodedResource]> {
    for (const [name, one] of this.base) if (!this.without.has(name)) yield [name, this.own.get(name) ?? one];
    for (const entry of this.own) if (!this.base.has(entry[0])) yield entry;
  }

  *keys(): MapIterator<string> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): MapIterator<EncodedResource> {
    for (const [, resource] of this.entries()) yield resource;
  }

  [Symbol.iterator](): MapIterator<[string, EncodedResource]> {
    return this.entries();
  }

  forEach(visit: (resource: EncodedResource, name: string, map: ResourceMap) => void): void {
    for (const [name, resource] of this.entries()) visit(resource, name, this);
  }
}
