/** Image manifests follow the OCI image specification, or Docker image manifest 2.2. */
import { isObject } from '../../../runtime/json-object.ts';

export interface ImageLayer {
  readonly mediaType: string;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
  readonly size: number;
}

export type Manifest =
  | { readonly kind: 'index'; readonly manifests: readonly IndexEntry[] }
  | { readonly kind: 'image'; readonly layers: readonly ImageLayer[] };

export interface IndexEntry {
  readonly digest: string;
  readonly os: string;
  readonly architecture: string;
}

export interface ModuleLayer {
  readonly layer: ImageLayer;
  /** A `wasm` layer is the module; other layers contain a file `plugin.wasm`. */
  readonly format: 'wasm' | 'tar+gzip' | 'tar';
}

/** Registries such as Docker's have this limit. */
export const maxManifestBytes = 4 * 1024 * 1024;
const maxEntries = 1_000;

export const manifestTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
] as const;

const formats: ReadonlyMap<string, ModuleLayer['format']> = new Map([
  ['application/vnd.module.wasm.content.layer.v1+wasm', 'wasm'],
  ['application/wasm', 'wasm'],
  ['application/vnd.docker.image.rootfs.diff.tar.gzip', 'tar+gzip'],
  ['application/vnd.oci.image.layer.v1.tar+gzip', 'tar+gzip'],
  ['application/vnd.oci.image.layer.v1.tar', 'tar'],
]);

/** @throws Error if the text is not a manifest */
export function parseManifest(text: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('manifest must be JSON');
  }
  if (!isObject(value)) throw new Error('manifest must be a JSON object');
  const { layers, manifests } = value;
  if (layers !== undefined && manifests !== undefined) throw new Error('manifest must not have layers and manifests');
  if (Array.isArray(manifests))
    return { kind: 'index', manifests: requireBoundedList(manifests, 'manifests').map(indexEntry) };
  if (Array.isArray(layers)) return { kind: 'image', layers: requireBoundedList(layers, 'layers').map(layerOf) };
  throw new Error('manifest must have layers or manifests');
}

function requireBoundedList(list: readonly unknown[], name: string): readonly unknown[] {
  if (list.length > maxEntries) throw new Error(`manifest must have at most ${maxEntries} ${name}`);
  return list;
}

function indexEntry(value: unknown, index: number): IndexEntry {
  const { digest, platform } = isObject(value) ? value : {};
  const { os, architecture } = isObject(platform) ? platform : {};
  return {
    digest: digestOf(digest, `manifests[${index}]`),
    os: textOrEmpty(os),
    architecture: textOrEmpty(architecture),
  };
}

function layerOf(value: unknown, index: number): ImageLayer {
  const { mediaType, digest, size } = isObject(value) ? value : {};
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw new Error(`layers[${index}].size must be an integer >= 0`);
  }
  return { mediaType: textOrEmpty(mediaType), digest: digestOf(digest, `layers[${index}]`), size };
}

function digestOf(value: unknown, fieldPath: string): string {
  if (typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value)) return value;
  throw new Error(`${fieldPath}.digest must be sha256: and 64 hexadecimal digits`);
}

function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

const platforms: readonly ((entry: IndexEntry) => boolean)[] = [
  ({ architecture }) => architecture === 'wasm',
  ({ os, architecture }) => os === 'linux' && architecture === 'amd64',
  ({ os, architecture }) => os === '' && architecture === '',
  ({ os, architecture }) => os !== 'unknown' && architecture !== 'unknown',
];

/**
 * Any image suffices: the module is the same for each platform.
 *
 * @throws Error if the index has no image
 */
export function imageOfIndex(manifests: readonly IndexEntry[]): string {
  for (const matchesPlatform of platforms) {
    const matchingManifest = manifests.find(matchesPlatform);
    if (matchingManifest !== undefined) return matchingManifest.digest;
  }
  throw new Error('index has no image');
}

/** @throws Error if no layer can contain a module */
export function moduleLayerOf(layers: readonly ImageLayer[]): ModuleLayer {
  const layerFormats = layers.map((layer) => ({ layer, format: formats.get(layer.mediaType) }));
  const chosenLayer = layerFormats.find(({ format }) => format === 'wasm') ?? layerFormats.at(-1);
  if (chosenLayer === undefined) throw new Error('image has no layers');
  const { layer, format } = chosenLayer;
  if (format === undefined) {
    const printableType = layer.mediaType.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 100);
    throw new Error(
      `media type of the last layer must be one of ${[...formats.keys()].join(', ')}, got "${printableType}"`,
    );
  }
  return { layer, format };
}
