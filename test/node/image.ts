/** Container images from files of this machine, imported into a node without a registry. */
import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { execa } from 'execa';
import type { NodeNamespaces } from './node-namespaces.ts';

export interface Image {
  /** With its tag: `localhost/pause:test`. */
  readonly name: string;
  /** Folder whose content is the only layer. */
  readonly root: string;
  readonly entrypoint: readonly string[];
  /** `uid:gid`. */
  readonly user: string;
}

/** A containerd and its namespaces. */
export interface ContainerRuntime {
  readonly namespaces: NodeNamespaces;
  readonly socket: string;
}

const media = (type: string): string => `application/vnd.oci.image.${type}`;
const path = '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Builds an OCI layout and imports it. The layer is not compressed: that takes longer than to copy it. */
export async function importImage(image: Image, folder: string, runtime: ContainerRuntime): Promise<void> {
  const layout = join(folder, image.name.replaceAll(/\W/g, '-'));
  const blobs = join(layout, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  try {
    const layer = join(blobs, 'layer');
    await execa('tar', ['--owner=0', '--group=0', '--numeric-owner', '-C', image.root, '-cf', layer, '.']);
    const digest = await digestOf(layer);
    await execa('mv', [layer, join(blobs, digest)]);
    const size = statSync(join(blobs, digest)).size;
    const write = (type: string, value: unknown) => {
      const text = JSON.stringify(value);
      const hash = createHash('sha256').update(text).digest('hex');
      writeFileSync(join(blobs, hash), text);
      return { mediaType: media(type), digest: `sha256:${hash}`, size: Buffer.byteLength(text) };
    };
    const { user: User, entrypoint: Entrypoint, name } = image;
    const config = write('config.v1+json', {
      ...{ architecture: process.arch === 'x64' ? 'amd64' : process.arch, os: 'linux' },
      config: { User, Entrypoint, Env: [`PATH=${path}`], WorkingDir: '/' },
      rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
    });
    const layers = [{ mediaType: media('layer.v1.tar'), digest: `sha256:${digest}`, size }];
    const manifest = write('manifest.v1+json', {
      ...{ schemaVersion: 2, mediaType: media('manifest.v1+json') },
      ...{ config, layers },
    });
    const annotations = { 'io.containerd.image.name': name };
    const index = { schemaVersion: 2, mediaType: media('index.v1+json'), manifests: [{ ...manifest, annotations }] };
    writeFileSync(join(layout, 'index.json'), JSON.stringify(index));
    writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    await importLayout(layout, runtime);
  } finally {
    rmSync(layout, { recursive: true, force: true });
  }
}

/** Imports the images of an OCI layout under the names that its index gives them. */
export async function importLayout(layout: string, { namespaces, socket }: ContainerRuntime): Promise<void> {
  const script = 'tar -C "$1" -cf - . | ctr -a "$2" -n k8s.io images import -';
  await namespaces.run(['sh', '-c', script, 'sh', layout, socket]);
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}
