import type { EnvoyResource } from '../../../networking/index.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';
import { LayeredResources } from '../../xds/responses/layered-resources.ts';
import { encodeGenerated } from './encode-generated.ts';
import type { ResourceMap } from './list-build.ts';

export type EncodeResource = (resource: EnvoyResource) => EncodedResource;

export class ResourceEncoder {
  readonly #encode: EncodeResource;
  readonly #onUnencodable: ((resource: EnvoyResource, error: unknown) => void) | undefined;
  readonly #encodedResources = new WeakMap<EnvoyResource, EncodedResource>();
  readonly #unencodable = new WeakSet<EnvoyResource>();

  constructor(
    encode: EncodeResource = encodeGenerated,
    unencodable?: (resource: EnvoyResource, error: unknown) => void,
  ) {
    this.#encode = encode;
    this.#onUnencodable = unencodable;
  }

  /**
   * @param previous returned if its content is equal
   * @returns `undefined` if the resource cannot be encoded, so that its name keeps the previous version
   */
  encode(resource: EnvoyResource, previous: EncodedResource | undefined): EncodedResource | undefined {
    const cachedResource = this.#encodedResources.get(resource);
    if (cachedResource !== undefined) return previous?.version === cachedResource.version ? previous : cachedResource;
    if (this.#unencodable.has(resource)) return undefined;
    let latest: EncodedResource;
    try {
      latest = this.#encode(resource);
    } catch (error) {
      this.#unencodable.add(resource);
      this.#onUnencodable?.(resource, error);
      return undefined;
    }
    const encodedResource = previous?.version === latest.version ? previous : latest;
    this.#encodedResources.set(resource, encodedResource);
    return encodedResource;
  }

  buildLayered(
    base: ResourceMap,
    ownResources: readonly EnvoyResource[],
    removedNames: readonly string[],
    previous: ResourceMap | undefined,
  ): ResourceMap {
    const encodedResources: EncodedResource[] = [];
    const missingNames = [...removedNames];
    for (const resource of ownResources) {
      const { name } = resource;
      const latest = this.encode(resource, base.get(name)) ?? previous?.get(name);
      if (latest === undefined) missingNames.push(name);
      // Reuses equal bytes of the base or the previous list.
      else
        encodedResources.push(
          [base.get(name), previous?.get(name)].find((candidate) => candidate?.version === latest.version) ?? latest,
        );
    }
    return LayeredResources.layerOver(base, encodedResources, missingNames, previous);
  }
}
