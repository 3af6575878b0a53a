/** Encodes resources, each once. */
import type { Resource } from '../../../networking/index.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';
import { LayeredResources } from '../../xds/responses/layered-resources.ts';
import { encodeMade } from './encode-made.ts';
import type { ResourceMap } from './list-making.ts';

export type Encode = (resource: Resource) => EncodedResource;

export class ResourceEncoder {
  readonly #encodeMade: Encode;
  readonly #unencodableFound: ((resource: Resource, error: unknown) => void) | undefined;
  readonly #encoded = new WeakMap<Resource, EncodedResource>();
  readonly #unencodable = new WeakSet<Resource>();

  /** @param unencodable called once for a resource that cannot be encoded */
  constructor(encode: Encode = encodeMade, unencodable?: (resource: Resource, error: unknown) => void) {
    this.#encodeMade = encode;
    this.#unencodableFound = unencodable;
  }

  /**
   * @param before what the name stood for: kept if nothing of it differs
   * @returns `undefined` if it cannot be encoded: only this resource is left out, and its name keeps what it stood for
   */
  encode(resource: Resource, before: EncodedResource | undefined): EncodedResource | undefined {
    const known = this.#encoded.get(resource);
    // Encoded ahead, without the one before at hand.
    if (known !== undefined) return before?.version === known.version ? before : known;
    if (this.#unencodable.has(resource)) return undefined;
    let made: EncodedResource;
    try {
      made = this.#encodeMade(resource);
    } catch (error) {
      this.#unencodable.add(resource);
      this.#unencodableFound?.(resource, error);
      return undefined;
    }
    const encoded = before?.version === made.version ? before : made;
    this.#encoded.set(resource, encoded);
    return encoded;
  }

  /** A list of others with a few differences. */
  layered(
    base: ResourceMap,
    own: readonly Resource[],
    without: readonly string[],
    before: ResourceMap | undefined,
  ): ResourceMap {
    const encoded: EncodedResource[] = [];
    // What the others have is none of these.
    const missing = [...without];
    for (const resource of own) {
      const { name } = resource;
      const made = this.encode(resource, base.get(name)) ?? before?.get(name);
      if (made === undefined) missing.push(name);
      // The same bytes may have been made for others meanwhile.
      else encoded.push([base.get(name), before?.get(name)].find((one) => one?.version === made.version) ?? made);
    }
    return LayeredResources.over(base, encoded, missing, before);
  }
}
