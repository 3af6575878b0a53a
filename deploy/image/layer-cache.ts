/** Cache of layers that do not depend on the sources of chartpilot (Debian, Node, Envoy). */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { envoyVersion } from '../../src/agent/envoy/envoy-binary.ts';
import { isSystemError } from '../../src/runtime/errors.ts';
import type { Architecture } from './architecture.ts';
import type { Component } from './bill-of-materials.ts';
import type { LayerName } from './images.ts';
import type { Compression, Layer } from './oci-layout.ts';
import { lockedPackage } from './program-layers.ts';

export const baseLayerNames = ['debian', 'node', 'envoy'] as const satisfies readonly LayerName[];
export type BaseLayerName = (typeof baseLayerNames)[number];

export type BaseLayers = Readonly<
  Record<BaseLayerName, { readonly layer: Layer; readonly components: readonly Component[] }>
>;

/** All inputs of these layers, except the versions of Debian's packages. */
export interface LayerInputs {
  readonly architecture: Architecture;
  readonly compression: Compression;
  readonly timeS: number;
  readonly checkout: string;
}

const indexFile = 'layers.json';

export class LayerCache {
  readonly #folder: string;
  readonly #entry: string;

  /** @param folder is created; entries of other inputs stay in it */
  constructor(folder: string, inputs: LayerInputs) {
    this.#folder = folder;
    this.#entry = join(folder, digestOf(inputs));
  }

  /** @param blobs folder that receives the files of the layers @returns `undefined` if they must be built */
  read(blobs: string): BaseLayers | undefined {
    const file = join(this.#entry, indexFile);
    if (!existsSync(file)) return undefined;
    const layers = JSON.parse(readFileSync(file, 'utf8')) as BaseLayers;
    for (const { layer } of Object.values(layers)) linkOrCopy(blobOf(this.#entry, layer), blobOf(blobs, layer));
    return layers;
  }

  /** After two concurrent builds, one entry remains. @param blobs folder with the files of the layers */
  write(layers: BaseLayers, blobs: string): void {
    mkdirSync(this.#folder, { recursive: true });
    const draft = mkdtempSync(`${this.#entry}.new-`);
    try {
      for (const { layer } of Object.values(layers)) linkOrCopy(blobOf(blobs, layer), blobOf(draft, layer));
      writeFileSync(join(draft, indexFile), JSON.stringify(layers));
      renameSync(draft, this.#entry);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      if (!isSystemError(error, 'ENOTEMPTY') && !isSystemError(error, 'EEXIST')) throw error;
    }
  }
}

/** Includes the sources of this folder, because they determine the files of the layers. */
function digestOf({ architecture, compression, timeS, checkout }: LayerInputs): string {
  const digest = createHash('sha256');
  const folder = import.meta.dirname;
  for (const name of readdirSync(folder).sort()) {
    if (name.endsWith('.ts') && !name.endsWith('.test.ts')) digest.update(readFileSync(join(folder, name)));
  }
  const node = lockedPackage(checkout, `node-linux-${architecture.node}`).integrity;
  digest.update(JSON.stringify([architecture.name, compression, timeS, node, envoyVersion]));
  return digest.digest('hex').slice(0, 32);
}

function blobOf(folder: string, { digest }: Layer): string {
  return join(folder, digest.slice('sha256:'.length));
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!isSystemError(error, 'EXDEV')) throw error;
    copyFileSync(from, to);
  }
}
