/**
 * Writes an OCI image layout (image-spec 1.1). Equal folders give equal bytes: order, times, owners and gzip headers
 * are fixed.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { runTool } from './run-tool.ts';

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

export interface Layer extends Descriptor {
  /** Digest of the uncompressed archive. */
  readonly diffId: string;
  readonly unpackedBytes: number;
}

/** `none` builds and imports faster, for a local cluster. The digests of the uncompressed layers are equal. */
export type Compression = 'gzip' | 'none';

export interface ImageSettings {
  /** Full name with tag, for `ctr images import` and `kind load`. */
  readonly name: string;
  /** Tag within the layout. */
  readonly tag: string;
  readonly architecture: string;
  readonly layers: readonly Layer[];
  /** As in the OCI image configuration. */
  readonly config: ContainerConfig;
  readonly labels: Readonly<Record<string, string>>;
}

export interface ContainerConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly WorkingDir: string;
}

/** 1980-01-01, the earliest time that every archive format can store. `SOURCE_DATE_EPOCH` overrides it. */
const defaultTimeS = 315_532_800;

/** Seconds since 1970: the time of every file and of the image. */
export function imageTimeS(env: NodeJS.ProcessEnv = process.env): number {
  return Number(env.SOURCE_DATE_EPOCH || defaultTimeS);
}

export class OciLayout {
  readonly folder: string;
  readonly #timeS: number;
  readonly #compression: Compression;
  readonly #manifests: object[] = [];

  /** @param folder must be absent or empty */
  constructor(folder: string, timeS = imageTimeS(), compression: Compression = 'gzip') {
    this.folder = folder;
    this.#timeS = timeS;
    this.#compression = compression;
    mkdirSync(this.blobs, { recursive: true });
  }

  /** Folder of the blobs, which are named by their digests. */
  get blobs(): string {
    return join(this.folder, 'blobs/sha256');
  }

  /** Archives and compresses the content of a folder. */
  async addLayer(root: string): Promise<Layer> {
    const archive = join(this.folder, 'layer.tar');
    const compressed = join(this.folder, 'layer.tar.gz');
    const isPlain = this.#compression === 'none';
    runTool('tar', [
      ...['--create', '--file', archive, '--directory', root, '--sort=name', '--format=posix'],
      ...['--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f', `--mtime=@${this.#timeS}`],
      ...['--owner=0', '--group=0', '--numeric-owner', '.'],
    ]);
    const [plain, packed] = [createHash('sha256'), createHash('sha256')];
    const tap = (hash: ReturnType<typeof createHash>): PassThrough => {
      const stream = new PassThrough();
      stream.on('data', (chunk) => hash.update(chunk));
      return stream;
    };
    const source = createReadStream(archive, { highWaterMark: 1 << 20 });
    if (isPlain) await pipeline(source, plain);
    else await pipeline(source, tap(plain), createGzip({ level: 6 }), tap(packed), createWriteStream(compressed));
    const unpackedBytes = statSync(archive).size;
    const diffId = plain.digest('hex');
    const digest = isPlain ? diffId : packed.digest('hex');
    renameSync(isPlain ? archive : compressed, join(this.blobs, digest));
    rmSync(archive, { force: true });
    return {
      mediaType: `application/vnd.oci.image.layer.v1.tar${isPlain ? '' : '+gzip'}`,
      digest: `sha256:${digest}`,
      size: statSync(join(this.blobs, digest)).size,
      diffId: `sha256:${diffId}`,
      unpackedBytes,
    };
  }

  /** @returns descriptor of the image's manifest */
  addImage({ name, tag, architecture, layers, config, labels }: ImageSettings): Descriptor {
    const created = new Date(this.#timeS * 1000).toISOString().replace('.000Z', 'Z');
    const manifest = this.#addJson('application/vnd.oci.image.manifest.v1+json', {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: this.#addJson('application/vnd.oci.image.config.v1+json', {
        created,
        architecture,
        os: 'linux',
        config: { ...config, Labels: labels },
        rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      }),
      layers: layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
    });
    this.#manifests.push({
      ...manifest,
      platform: { architecture, os: 'linux' },
      annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': tag },
    });
    return manifest;
  }

  /** Writes the index. Must be called after the last image. */
  finish(): void {
    writeFileSync(join(this.folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    const mediaType = 'application/vnd.oci.image.index.v1+json';
    writeFileSync(
      join(this.folder, 'index.json'),
      JSON.stringify({ schemaVersion: 2, mediaType, manifests: this.#manifests }),
    );
  }

  #addJson(mediaType: string, value: object): Descriptor {
    const text = JSON.stringify(value);
    const digest = createHash('sha256').update(text).digest('hex');
    writeFileSync(join(this.blobs, digest), text);
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(text) };
  }
}
