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

  private constructor(baseMap: ResourceMap, overrides: ResourceMap, withoutNames: ReadonlySet<string>) {
    this.base = baseMap;
    this.overrides = overrides;
    this.omittedNames = withoutNames;
    let { size } = baseMap;
    for (const name of overrides.keys()) if (!baseMap.has(name)) size++;
    this.size = size - withoutNames.size;
  }

  /**
   * Returns the base itself if nothing differs.
   *
   * @param overrides resources that equal those of the base are ignored
   * @param withoutNames disjoint from `overrides`
   * @param previous returned if it is equal
   */
  static createLayerOver(
    baseMap: ResourceMap,
    overrides: Iterable<EncodedResource>,
    withoutNames: Iterable<string>,
    previous?: ResourceMap,
  ): ResourceMap {
    const changedResources = new Map(
      [...overrides]
        .filter((resource) => baseMap.get(resource.name) !== resource)
        .map((resource) => [resource.name, resource]),
    );
    const removedNames = new Set([...withoutNames].filter((name) => baseMap.has(name)));
    if (changedResources.size === 0 && removedNames.size === 0) return baseMap;
    const candidate = new LayeredResources(baseMap, changedResources, removedNames);
    return previous instanceof LayeredResources && previous.#isEquivalentTo(candidate) ? previous : candidate;
  }

  /** Equal differences from one base share a map while it is in use, so that results for this map are computed and encoded once. */
  static sharedLayerOver(
    baseMap: ResourceMap,
    overrides: readonly EncodedResource[],
    withoutNames: readonly string[],
  ): ResourceMap {
    if (overrides.length + withoutNames.length === 0) return baseMap;
    const cachedLayers = layersOf(baseMap);
    const key = `${identityText(overrides)}\n${withoutNames.join('\n')}`;
    let layeredResources = cachedLayers.get(key);
    if (layeredResources === undefined) {
      layeredResources = LayeredResources.createLayerOver(baseMap, overrides, withoutNames);
      cachedLayers.set(key, layeredResources);
    }
    return layeredResources;
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

  forEach(callback: (resource: EncodedResource, name: string, map: ResourceMap) => void): void {
    for (const [name, resource] of this.entries()) callback(resource, name, this);
  }
}
