import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fromPromise } from 'xstate';
import { type FetchOutcome, wasmModuleMachine } from '../../../machines/agent/wasm/wasm-module.machine.ts';
import type { WasmModule } from '../../../machines/agent/wasm-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { GuardedFetch } from '../../runtime/fences/guarded-fetch.ts';
import { type ImageReference, isImageUrl, parseImageUrl } from './image/image-reference.ts';
import { credentialsFor, type RegistryCredentials } from './image/registry-credentials.ts';
import { ChecksumError, type ModuleCache, ModuleError } from './module-cache.ts';
import type { FetchResult, WasmCounts } from './wasm-counts.ts';

export interface WasmModules {
  readonly cache: ModuleCache;
  readonly fetch: GuardedFetch;
  readonly counts: WasmCounts;
  /** The key is the number of the fetch. Docker configurations are not in events, because they contain secrets. */
  readonly pullSecrets: Map<number, string>;
  /** Whether a registry may use plaintext. */
  readonly isInsecure: (registry: string) => boolean;
  readonly dockerConfig: string;
}

export const maxModuleRedirects = 5;
const schemes: ReadonlySet<string> = new Set(['http:', 'https:']);

export function wasmModuleWithEffects(modules: WasmModules) {
  return wasmModuleMachine.provide({
    actors: {
      fetchModule: fromPromise<FetchOutcome, WasmModule>(async ({ input, signal }) => {
        try {
          return { file: await obtainModule(modules, input, signal) };
        } catch (error) {
          return { reason: messageOf(error) };
        }
      }),
    },
  });
}

async function obtainModule(modules: WasmModules, module: WasmModule, signal: AbortSignal): Promise<string> {
  const { cache, counts } = modules;
  const image = isImageUrl(module.url) ? parseImageUrl(module.url) : undefined;
  const digest = image && expectedDigest(image, module.sha256);
  const name = digest ? imageNames.ofDigest(digest) : imageNames.ofTag(module);
  const cachedFile = image === undefined ? await cache.lookup(module) : (await cache.lookupImage(name))?.file;
  counts.recordLookup(cachedFile !== undefined);
  if (cachedFile !== undefined) return cachedFile;
  try {
    const file = await (image === undefined
      ? fetchModule(modules, module, signal)
      : pullModule(modules, module, { image, name, digest: digest ?? '' }, signal));
    counts.countFetch('success');
    return file;
  } catch (error) {
    counts.countFetch(resultOf(error));
    throw error;
  } finally {
    counts.entries = await cache.countModules();
  }
}

function resultOf(error: unknown): FetchResult {
  if (error instanceof ChecksumError) return 'checksum_mismatched';
  return error instanceof ModuleError ? 'fetch_failure' : 'download_failure';
}

async function fetchModule({ cache, fetch }: WasmModules, module: WasmModule, signal: AbortSignal): Promise<string> {
  const protocol = URL.parse(module.url)?.protocol;
  if (protocol === undefined || !schemes.has(protocol)) throw new Error('URL must use http, https or oci');
  const { ok, status, body } = await fetch(module.url, { signal, headers: {} });
  if (!ok || body === null) throw new Error(`status must be 200, got ${status}`);
  return cache.store(module, body);
}

const imageNames = {
  ofDigest: (digest: string): string => `digest ${digest}`,
  /** A plugin with policy `Always` pulls its image once per version of the plugin. */
  ofTag: ({ url, version }: WasmModule): string => `tag ${url} ${version}`,
};

/**
 * Empty if any manifest is accepted.
 *
 * @throws Error if URL and checksum differ
 */
function expectedDigest({ digest }: ImageReference, sha256: string): string {
  if (digest !== '' && sha256 !== '' && digest !== sha256) {
    throw new ChecksumError(`SHA-256 must be that of the URL, ${digest}, got ${sha256}`);
  }
  return digest === '' ? sha256 : digest;
}

interface PullOrder {
  readonly image: ImageReference;
  readonly name: string;
  /** SHA-256 of the manifest or index; empty if any is valid. */
  readonly digest: string;
}

async function pullModule(
  modules: WasmModules,
  { id }: WasmModule,
  { image, name, digest }: PullOrder,
  signal: AbortSignal,
): Promise<string> {
  const { cache, fetch, isInsecure } = modules;
  const credentials = await credentialsOf(modules, id, image.registry);
  // Loaded on demand, because most agents pull no image.
  const { openImage } = await import('./image/pull-image.ts');
  const pulledImage = await openImage(image, { fetch, allowsPlain: isInsecure(image.registry), credentials, signal });
  if (digest !== '' && !pulledImage.digests.includes(digest)) {
    throw new ChecksumError(`SHA-256 of the image must be ${digest}, got ${pulledImage.digests[0]}`);
  }
  const cachedImage = await cache.lookupImage(imageNames.ofDigest(pulledImage.digest));
  const storedModule = cachedImage ?? (await cache.storeImage(pulledImage.module()));
  await cache.nameImage(imageNames.ofDigest(pulledImage.digest), storedModule);
  await cache.nameImage(name, storedModule);
  return storedModule.file;
}

async function credentialsOf(
  { pullSecrets, dockerConfig }: WasmModules,
  id: number,
  registry: string,
): Promise<RegistryCredentials | undefined> {
  const secret = pullSecrets.get(id);
  if (secret) return credentialsFor(registry, secret);
  const agentConfig = dockerConfig === '' ? undefined : await readFile(join(dockerConfig, 'config.json'), 'utf8');
  const credentials = agentConfig === undefined ? undefined : credentialsFor(registry, agentConfig);
  if (secret === undefined || credentials !== undefined) return credentials;
  throw new Error(
    'the control plane sent no pull secret: it must be a Secret of type kubernetes.io/dockerconfigjson in the namespace of the plugin, and is sent only to authenticated proxies of this namespace',
  );
}
