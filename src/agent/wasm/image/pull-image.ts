/**
 * Sends credentials only to the registry of the image and its token service, never to hosts that these redirect to (OCI distribution specification).
 */
import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../../../runtime/errors.ts';
import { boundedBytes, boundedText } from '../../../runtime/fences/bounded-text.ts';
import type { GuardedFetch, GuardedResponse } from '../../../runtime/fences/guarded-fetch.ts';
import { isObject } from '../../../runtime/json-object.ts';
import {
  type ImageLayer,
  imageOfIndex,
  manifestTypes,
  maxManifestBytes,
  moduleLayerOf,
  parseManifest,
} from './image-manifest.ts';
import type { ImageReference } from './image-reference.ts';
import { parseChallenges } from './registry-challenge.ts';
import type { RegistryCredentials } from './registry-credentials.ts';
import { tarFile } from './tar-file.ts';

export interface PullOptions {
  /** Requests do not connect to blocked addresses. */
  readonly fetch: GuardedFetch;
  readonly allowsPlain: boolean;
  readonly credentials: RegistryCredentials | undefined;
  readonly signal: AbortSignal;
  readonly limits?: ImageLimits;
}

export interface ImageLimits {
  readonly maxLayerBytes: number;
  readonly maxArchiveBytes: number;
  readonly maxEntries: number;
}

const defaultLimits: ImageLimits = {
  maxLayerBytes: 256 * 1024 * 1024,
  maxArchiveBytes: 512 * 1024 * 1024,
  maxEntries: 10_000,
};

export interface PulledImage {
  /** Digest of the image's manifest, in hexadecimal. */
  readonly digest: string;
  /** Includes the digest of the index if the image name refers to one. */
  readonly digests: readonly string[];
  /** Throws an Error, possibly only at its end, if the layer does not match the manifest. */
  module(): AsyncGenerator<Uint8Array>;
}

const moduleFile = 'plugin.wasm';
const maxTokenBytes = 256 * 1024;
/** Indexes of indexes are not supported. */
const maxIndexes = 1;

/** @throws Error if the registry has no such image, or rejects the request */
export async function openImage(image: ImageReference, options: PullOptions): Promise<PulledImage> {
  const registry = new Registry(image, options);
  const digests: string[] = [];
  let reference = image.reference;
  for (let indexes = 0; ; indexes++) {
    const text = await registry.manifest(reference);
    const digest = createHash('sha256').update(text).digest('hex');
    if (reference.startsWith('sha256:') && reference !== `sha256:${digest}`) {
      throw new Error(`digest of the manifest must be ${reference}, got sha256:${digest}`);
    }
    digests.push(digest);
    const manifest = parseManifest(text.toString('utf8'));
    if (manifest.kind === 'index') {
      if (indexes === maxIndexes) throw new Error('index must not name an index');
      reference = imageOfIndex(manifest.manifests);
      continue;
    }
    const { layer, format } = moduleLayerOf(manifest.layers);
    const { maxLayerBytes, maxArchiveBytes, maxEntries } = options.limits ?? defaultLimits;
    if (layer.size > maxLayerBytes) {
      throw new Error(`layer of ${layer.size} bytes is larger than the limit of ${maxLayerBytes} bytes`);
    }
    return {
      digest,
      digests,
      async *module() {
        const blob = new CheckedBlob(layer, await registry.blob(layer.digest));
        const archive = format === 'tar+gzip' ? decompress(blob) : blob;
        yield* format === 'wasm' ? blob : tarFile(archive, moduleFile, { maxBytes: maxArchiveBytes, maxEntries });
        blob.verify();
      },
    };
  }
}

async function* decompress(compressedChunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  // The reader of `gunzip` receives an error of either stream.
  pipeline(Readable.from(compressedChunks, { objectMode: false }), gunzip, () => {});
  try {
    for await (const chunk of gunzip) yield chunk as Uint8Array;
  } catch (error) {
    throw new Error(`layer cannot be decompressed: ${messageOf(error)}`);
  }
}

class CheckedBlob implements AsyncIterable<Uint8Array> {
  readonly #layer: ImageLayer;
  readonly #body: AsyncIterable<Uint8Array>;
  readonly #hash = createHash('sha256');
  #bytes = 0;

  constructor(layer: ImageLayer, body: AsyncIterable<Uint8Array>) {
    this.#layer = layer;
    this.#body = body;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#body) {
      this.#bytes += chunk.length;
      if (this.#bytes > this.#layer.size) throw new Error(`layer must have ${this.#layer.size} bytes, got more`);
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** @throws Error if the layer is incomplete or differs from its digest */
  verify(): void {
    if (this.#bytes !== this.#layer.size) {
      throw new Error(`layer must have ${this.#layer.size} bytes, got ${this.#bytes}`);
    }
    const digest = `sha256:${this.#hash.digest('hex')}`;
    if (digest !== this.#layer.digest)
      throw new Error(`digest of the layer must be ${this.#layer.digest}, got ${digest}`);
  }
}

class Registry {
  readonly #image: ImageReference;
  readonly #options: PullOptions;
  #origin: string;
  #authorization: string | undefined;

  constructor(image: ImageReference, options: PullOptions) {
    this.#image = image;
    this.#options = options;
    this.#origin = `https://${image.registry}`;
    const bearer = options.credentials?.bearer;
    if (bearer !== undefined) this.#authorization = `Bearer ${bearer}`;
  }

  async manifest(reference: string): Promise<Buffer> {
    const { body } = await this.#get(`manifests/${reference}`, manifestTypes.join(', '));
    return boundedBytes(body, maxManifestBytes);
  }

  async blob(digest: string): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#get(`blobs/${digest}`, '*/*')).body;
  }

  async #get(path: string, accept: string): Promise<{ readonly body: AsyncIterable<Uint8Array> }> {
    const order = { path: `/v2/${this.#image.repository}/${path}`, accept };
    let response = await this.#request(order);
    if (response.status === 401 && (await this.#authenticate(response))) response = await this.#request(order);
    const { ok, status, body } = response;
    if (ok && body !== null) return { body };
    throw new Error(`${this.#origin}${order.path}: status must be 200, got ${status}`);
  }

  async #request(order: { readonly path: string; readonly accept: string }): Promise<GuardedResponse> {
    const { fetch, signal, allowsPlain } = this.#options;
    const { accept, path } = order;
    const headers = { accept, ...(this.#authorization !== undefined && { authorization: this.#authorization }) };
    try {
      return await fetch(`${this.#origin}${path}`, { signal, headers });
    } catch (error) {
      const isEncrypted = this.#origin.startsWith('https:');
      if (!allowsPlain || !isEncrypted || signal.aborted || !isPlaintextServerError(error)) throw error;
      this.#origin = `http://${this.#image.registry}`;
      return await this.#request(order);
    }
  }

  /** @returns whether a retry may succeed */
  async #authenticate({ headers }: GuardedResponse): Promise<boolean> {
    const { credentials } = this.#options;
    const challenges = parseChallenges([headers['www-authenticate'] ?? ''].flat().join(', '));
    const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
    if (bearer !== undefined && credentials?.bearer === undefined) {
      this.#authorization = `Bearer ${await this.#token(bearer.parameters)}`;
      return true;
    }
    if (credentials?.basic === undefined || !challenges.some(({ scheme }) => scheme === 'basic')) return false;
    this.#authorization = `Basic ${credentials.basic}`;
    return true;
  }

  async #token(parameters: ReadonlyMap<string, string>): Promise<string> {
    const realmUrl = URL.parse(parameters.get('realm') ?? '');
    if (realmUrl === null) throw new Error('realm of the registry must be a URL');
    const isPlainHttp = realmUrl.protocol === 'http:' && this.#origin.startsWith('http:');
    if (realmUrl.protocol !== 'https:' && !isPlainHttp) throw new Error('realm of the registry must use https');
    const service = parameters.get('service');
    if (service !== undefined) realmUrl.searchParams.set('service', service);
    realmUrl.searchParams.set('scope', `repository:${this.#image.repository}:pull`);
    const { fetch, signal, credentials } = this.#options;
    const headers = credentials?.basic === undefined ? {} : { authorization: `Basic ${credentials.basic}` };
    const { ok, status, body } = await fetch(realmUrl.href, { signal, headers });
    const source = `token service ${realmUrl.origin}`;
    if (!ok || body === null) throw new Error(`${source}: status must be 200, got ${status}`);
    const token = parseToken(await boundedText(body, maxTokenBytes));
    if (token === undefined) throw new Error(`${source}: response must have a token`);
    return token;
  }
}

function parseToken(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { token, access_token: accessToken } = isObject(value) ? value : {};
  const tokenValue = [token, accessToken].find((candidate) => typeof candidate === 'string' && candidate !== '');
  return typeof tokenValue === 'string' && /^[\x21-\x7e]+$/.test(tokenValue) ? tokenValue : undefined;
}

const plaintextErrorCodes: ReadonlySet<string> = new Set([
  ...['EPROTO', 'ECONNRESET', 'ECONNREFUSED'],
  ...['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'ERR_SSL_HTTP_REQUEST'],
]);

/** A TLS client gets these errors from a server without TLS, or at a closed port. */
function isPlaintextServerError(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && plaintextErrorCodes.has(error.code)
  );
}
