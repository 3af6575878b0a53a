import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { identityText, WeakValues } from '../../../model/collections/weak-values.ts';
import type { EncodedResource } from '../resource-source.ts';

type ResourceMap = ReadonlyMap<string, EncodedResource>;

const layersOf = memoizeByObject((_: ResourceMap) => new WeakValues<ResourceMap>());

/** An immutable map that is stored as differences from a base. It has the order of the base; additional resources follow. */
export class LayeredResources implements ResourceMap {
  readonly base: ResourceMap;
  readonly overrides: ResourceMap;
  /** Names that are only in the base. */
  readonly omittedNames: ReadonlySet<string>;
  readonly size: number;

  private constructor(base: ResourceMap, overrides: ResourceMap, withoutNames: ReadonlySet<string>) {
    this.base = base;
    this.overrides = overrides;
    this.omittedNames = withoutNames;
    let { size } = base;
    for (const name of overrides.keys()) if (!base.has(name)) size++;
    this.size = size - withoutNames.size;
  }

  /**
   * Returns the base itself if nothing differs.
   *
   * @param overrides resources that equal those of the base are ignored
   * @param withoutNames disjoint from `overrides`
   * @param previous returned if it is equal
   */
  static layerOver(
    base: ResourceMap,
    overrides: Iterable<EncodedResource>,
    withoutNames: Iterable<string>,
    previous?: ResourceMap,
  ): ResourceMap {
    const different = new Map(
      [...overrides]
        .filter((resource) => base.get(resource.name) !== resource)
        .map((resource) => [resource.name, resource]),
    );
    const removedNames = new Set([...withoutNames].filter((name) => base.has(name)));
    if (different.size === 0 && removedNames.size === 0) return base;
    const candidate = new LayeredResources(base, different, removedNames);
    return previous instanceof LayeredResources && previous.#isEquivalentTo(candidate) ? previous : candidate;
  }

  /** Equal differences from one base share a map while it is in use, so that results for this map are computed and encoded once. */
  static sharedLayerOver(
    base: ResourceMap,
    overrides: readonly EncodedResource[],
    withoutNames: readonly string[],
  ): ResourceMap {
    if (overrides.length + withoutNames.length === 0) return base;
    const cachedLayers = layersOf(base);
    const key = `${identityText(overrides)}\n${withoutNames.join('\n')}`;
    let layered = cachedLayers.get(key);
    if (layered === undefined) {
      layered = LayeredResources.layerOver(base, overrides, withoutNames);
      cachedLayers.set(key, layered);
    }
    return layered;
  }

  #isEquivalentTo({ base, overrides, omittedNames }: LayeredResources): boolean {
    if (this.base !== base || this.overrides.size !== overrides.size || this.omittedNames.size !== omittedNames.size)
      return false;
    return (
      [...overrides].every(([name, resource]) => this.overrides.get(name) === resource) &&
      [...omittedNames].every((name) => this.omittedNames.has(name))
    );
  }

  get(name: string): EncodedResource | undefined {
    return this.overrides.get(name) ?? (this.omittedNames.has(name) ? undefined : this.base.get(name));
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  *entries(): MapIterator<[string, EncodedResource]> {
    for (const [name, resource] of this.base)
      if (!this.omittedNames.has(name)) yield [name, this.overrides.get(name) ?? resource];
    for (const entry of this.overrides) if (!this.base.has(entry[0])) yield entry;
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
