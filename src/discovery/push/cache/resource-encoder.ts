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
  readonly #unencodableResources = new WeakSet<EnvoyResource>();

  constructor(
    encode: EncodeResource = encodeGenerated,
    onUnencodable?: (resource: EnvoyResource, error: unknown) => void,
  ) {
    this.#encode = encode;
    this.#onUnencodable = onUnencodable;
  }

  /**
   * @param previous returned if its content is equal
   * @returns `undefined` if the resource cannot be encoded, so that its name keeps the previous version
   */
  encode(resource: EnvoyResource, previous: EncodedResource | undefined): EncodedResource | undefined {
    const cachedResource = this.#encodedResources.get(resource);
    if (cachedResource !== undefined) return previous?.version === cachedResource.version ? previous : cachedResource;
    if (this.#unencodableResources.has(resource)) return undefined;
    let latestResource: EncodedResource;
    try {
      latestResource = this.#encode(resource);
    } catch (error) {
      this.#unencodableResources.add(resource);
      this.#onUnencodable?.(resource, error);
      return undefined;
    }
    const encodedResource = previous?.version === latestResource.version ? previous : latestResource;
    this.#encodedResources.set(resource, encodedResource);
    return encodedResource;
  }

  buildLayeredMap(
    baseMap: ResourceMap,
    ownResources: readonly EnvoyResource[],
    removedNames: readonly string[],
    previous: ResourceMap | undefined,
  ): ResourceMap {
    const encodedResources: EncodedResource[] = [];
    const missingNames = [...removedNames];
    for (const resource of ownResources) {
      const { name } = resource;
      const encodedResource = this.encode(resource, baseMap.get(name)) ?? previous?.get(name);
      if (encodedResource === undefined) missingNames.push(name);
      // Reuses equal bytes of the base or the previous list.
      else
        encodedResources.push(
          [baseMap.get(name), previous?.get(name)].find(
            (candidate) => candidate?.version === encodedResource.version,
          ) ?? encodedResource,
        );
    }
    return LayeredResources.createLayerOver(baseMap, encodedResources, missingNames, previous);
  }
}
