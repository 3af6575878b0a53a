/** Pulls images from a real registry on loopback. */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import {
  dockerConfig,
  ImageRegistry,
  type LayerContent,
  mediaTypes,
  type RegistryOptions,
  sha256Of,
  tarLayer,
  tarOf,
  wasmLayer,
} from '../../../../test/harness/image-registry.ts';
import { BlockedAddresses } from '../../../runtime/fences/blocked-addresses.ts';
import { guardedFetch } from '../../../runtime/fences/guarded-fetch.ts';
import { parseImageUrl } from './image-reference.ts';
import { type ImageLimits, openImage } from './pull-image.ts';
import { credentialsFor } from './registry-credentials.ts';

const registries: ImageRegistry[] = [];
afterEach(() => {
  for (const registry of registries.splice(0)) registry.stop();
});

async function start(options: RegistryOptions = {}): Promise<ImageRegistry> {
  const registry = await ImageRegistry.start(options);
  registries.push(registry);
  return registry;
}

const tls = createAuthority().issue(['127.0.0.1']);
const module = Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), Buffer.alloc(100_000, 'code')]);
const user = { name: 'robot', password: 'pass:word' };
const allowed = new BlockedAddresses({ allowed: ['127.0.0.0/8'] });

interface PullOptions {
  readonly secret?: string;
  readonly insecure?: boolean;
  readonly blocked?: BlockedAddresses;
  readonly limits?: Partial<ImageLimits>;
}

/** Pulls `repository:tag` or `repository@digest`. */
async function pull(registry: ImageRegistry, name: string, options: PullOptions = {}) {
  const { secret, insecure = true, blocked = allowed, limits } = options;
  const image = parseImageUrl(`oci://${registry.host}/${name}`);
  const pulled = await openImage(image, {
    fetch: guardedFetch(blocked, { isInsecure: () => insecure }),
    allowsPlain: insecure,
    credentials: secret === undefined ? undefined : credentialsFor(image.registry, secret),
    signal: AbortSignal.timeout(20_000),
    ...(limits && { limits: { maxLayerBytes: 1e6, maxArchiveBytes: 1e6, maxEntries: 100, ...limits } }),
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of pulled.module()) chunks.push(chunk);
  return { ...pulled, content: Buffer.concat(chunks) };
}

describe('image of a Wasm module', () => {
  test.each<[string, LayerContent[], string]>([
    ['a Docker image', [tarLayer(module, mediaTypes.dockerLayer)], mediaTypes.dockerManifest],
    ['an OCI image', [tarLayer(Buffer.from('older')), tarLayer(module)], mediaTypes.ociManifest],
    ['an OCI artifact', [wasmLayer(module), tarLayer(Buffer.from('config'))], mediaTypes.ociManifest],
  ])('is pulled as %s, over TLS and plaintext, by tag and digest', async (_, layers, mediaType) => {
    for (const options of [{ tls }, {}]) {
      const registry = await start(options);
      const digest = registry.push('team/plugin', 'v1', layers, mediaType);
      expect(await pull(registry, 'team/plugin:v1')).toMatchObject({ digest, digests: [digest], content: module });
      expect((await pull(registry, `team/plugin@sha256:${digest}`)).content).toEqual(module);
    }
  });

  test('is selected from an index: a Wasm image if there is one, and never an attestation', async () => {
    const registry = await start();
    const other = registry.push('plugin', 'other', [wasmLayer(Buffer.from('other'))]);
    const digest = registry.push('plugin', 'image', [wasmLayer(module)]);
    const index = registry.pushIndex('plugin', 'all', [
      { digest: other, platform: { os: 'unknown', architecture: 'unknown' } },
      { digest: other, platform: { os: 'linux', architecture: 'amd64' } },
      { digest, platform: { os: 'wasi', architecture: 'wasm' } },
    ]);
    const pulled = await pull(registry, 'plugin:all');
    expect(pulled).toMatchObject({ digest, digests: [index, digest], content: module });
    registry.pushIndex('plugin', 'nested', [{ digest: index, platform: {} }]);
    await expect(pull(registry, 'plugin:nested')).rejects.toThrow('index must not name an index');
  });

  test('is rejected over plaintext unless the registry is configured as insecure, and with an unknown certificate', async () => {
    for (const options of [{ tls }, {}]) {
      const registry = await start(options);
      registry.push('plugin', 'v1', [wasmLayer(module)]);
      await expect(pull(registry, 'plugin:v1', { insecure: false })).rejects.toThrow();
      expect(registry.requests).toEqual([]);
    }
  });
});

describe('registry credentials', () => {
  test.each(['basic', 'bearer'] as const)('are taken from the pull secret (%s)', async (authentication) => {
    const registry = await start({ tls, authentication, user });
    registry.push('team/plugin', 'v1', [wasmLayer(module)]);
    const secret = dockerConfig(registry.host, user.name, user.password);
    expect((await pull(registry, 'team/plugin:v1', { secret })).content).toEqual(module);
    for (const wrongSecret of [
      undefined,
      dockerConfig(registry.host, user.name, 'no'),
      dockerConfig('other.test', 'a', 'b'),
    ]) {
      const pulling = pull(registry, 'team/plugin:v1', wrongSecret === undefined ? {} : { secret: wrongSecret });
      await expect(pulling).rejects.toThrow('status must be 200, got 401');
    }
  });

  test('are not needed for a public image behind a token service', async () => {
    const registry = await start({ tls, authentication: 'bearer' });
    registry.push('team/plugin', 'v1', [wasmLayer(module)]);
    expect((await pull(registry, 'team/plugin:v1')).content).toEqual(module);
  });

  test('are not sent to hosts of redirected blobs', async () => {
    const storage = await start({ tls });
    const registry = await start({ tls, authentication: 'basic', user, blobsAt: () => storage.origin });
    for (const one of [storage, registry]) one.push('team/plugin', 'v1', [wasmLayer(module)]);
    const secret = dockerConfig(registry.host, user.name, user.password);
    expect((await pull(registry, 'team/plugin:v1', { secret })).content).toEqual(module);
    expect(storage.authorizations).toEqual(['']);
    expect(registry.authorizations.at(-1)).toMatch(/^Basic /);
  });

  test.each([
    ['a metadata service', 'https://169.254.169.254/latest', /169\.254\.169\.254 is a link-local address/],
    ['a host without TLS', 'http://127.0.0.1:1/token', 'realm of the registry must use https'],
    ['an invalid URL', 'token', 'realm of the registry must be a URL'],
  ])('are not sent to a token service that is %s', async (_, realm, message) => {
    const registry = await start({ tls, authentication: 'bearer', realm });
    registry.push('plugin', 'v1', [wasmLayer(module)]);
    const secret = dockerConfig(registry.host, user.name, user.password);
    await expect(pull(registry, 'plugin:v1', { secret })).rejects.toThrow(message);
  });
});

test('does not connect to a blocked address of the registry, or of a blob redirect', async () => {
  const blobsAt = (): string => 'https://169.254.169.254';
  const registry = await start({ tls, blobsAt });
  registry.push('plugin', 'v1', [wasmLayer(module)]);
  const blocked = new BlockedAddresses();
  await expect(pull(registry, 'plugin:v1', { blocked })).rejects.toThrow('host 127.0.0.1 is a loopback address');
  expect(registry.requests).toEqual([]);
  await expect(pull(registry, 'plugin:v1')).rejects.toThrow('host 169.254.169.254 is a link-local address');
});

describe('response of a hostile registry', () => {
  const limits = { maxLayerBytes: 50_000, maxArchiveBytes: 200_000, maxEntries: 10 };
  const bomb = gzipSync(tarOf([{ name: 'plugin.wasm', content: Buffer.alloc(1_000_000) }]));
  const manyEntries = gzipSync(tarOf(Array.from({ length: 20 }, (_, index) => ({ name: `f${index}` }))));
  const truncatedArchive = gzipSync(tarOf([{ name: 'plugin.wasm', content: module, size: module.length + 1_000_000 }]));
  const layer = (content: Buffer): LayerContent => ({ mediaType: mediaTypes.ociLayer, content });

  test.each<[string, LayerContent[], string]>([
    ['a layer over the limit', [wasmLayer(Buffer.alloc(60_000))], 'is larger than the limit of 50000 bytes'],
    ['a layer that decompresses beyond the limit', [layer(bomb)], 'archive is larger than the limit of 200000 bytes'],
    ['an archive of many entries', [layer(manyEntries)], 'archive has more than 10 entries'],
    ['an archive that ends within an entry', [layer(truncatedArchive)], 'archive ends within an entry'],
    ['an archive without the file', [layer(gzipSync(tarOf([{ name: 'other.wasm' }])))], 'no file plugin.wasm'],
    [
      'a link in place of the file',
      [layer(gzipSync(tarOf([{ name: 'plugin.wasm', type: '2' }])))],
      'no file plugin.wasm',
    ],
    ['a layer that is not gzip', [layer(Buffer.from('no'))], 'layer cannot be decompressed'],
    ['a layer of zeros', [layer(gzipSync(Buffer.alloc(100, 1)))], 'archive ends within an entry'],
    ['a layer that is not an archive', [layer(gzipSync(Buffer.alloc(1024, 1)))], 'not a tar archive'],
    [
      'a layer with bytes after its end',
      [layer(Buffer.concat([tarLayer(module).content, Buffer.from('x'.repeat(99))]))],
      'layer cannot be decompressed: incorrect header check',
    ],
    ['an unknown media type', [{ mediaType: 'text/html', content: Buffer.from('x') }], 'media type of the last layer'],
    ['no layer', [], 'image has no layers'],
  ])('is rejected with %s', async (_, layers, message) => {
    const registry = await start();
    registry.push('plugin', 'v1', layers);
    await expect(pull(registry, 'plugin:v1', { limits })).rejects.toThrow(message);
  });

  test('is rejected if the digest of manifest or layer differs', async () => {
    const registry = await start();
    const digest = registry.push('plugin', 'v1', [wasmLayer(module)]);
    registry.intercept = ({ url = '' }, response) => {
      if (!url.includes('/blobs/')) return false;
      response.end(Buffer.concat([module.subarray(1), Buffer.from('x')]));
      return true;
    };
    await expect(pull(registry, 'plugin:v1')).rejects.toThrow(`digest of the layer must be sha256:${sha256Of(module)}`);
    registry.intercept = ({ url = '' }, response) => {
      if (!url.includes('/manifests/')) return false;
      response.end(JSON.stringify({ layers: [] }));
      return true;
    };
    await expect(pull(registry, `plugin@sha256:${digest}`)).rejects.toThrow(`must be sha256:${digest}, got`);
  });

  test.each([
    ['an endless manifest', (response: ServerResponse) => flood(response), 'response exceeds'],
    ['a manifest of text', (response: ServerResponse) => response.end('<html>'), 'manifest must be JSON'],
    [
      'a manifest that is an index as well',
      (response: ServerResponse) => response.end('{"layers":[],"manifests":[]}'),
      'must not have layers and manifests',
    ],
    [
      'endless redirects',
      (response: ServerResponse) => response.writeHead(302, { location: '/v2/' }).end(),
      'more than 3 redirects',
    ],
  ])('is rejected if it is %s', async (_, respond, message) => {
    const registry = await start();
    registry.intercept = (_request, response) => {
      respond(response);
      return true;
    };
    await expect(pull(registry, 'plugin:v1')).rejects.toThrow(message);
  });
});

function flood(response: ServerResponse): void {
  const write = (): void => {
    while (response.writable && response.write(Buffer.alloc(64 * 1024, 0x20)));
    if (response.writable) response.once('drain', write);
  };
  response.on('error', () => {});
  write();
}
