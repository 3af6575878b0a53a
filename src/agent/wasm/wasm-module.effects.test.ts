/** Pulls modules of images, or uses cached ones. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { defaultFetchLimits } from '../../../machines/agent/wasm/wasm-module.machine.ts';
import type { ModuleFailed, ModuleFetched, WasmModule } from '../../../machines/agent/wasm-protocol.ts';
import { dockerConfig, ImageRegistry, sha256Of, tarLayer, wasmLayer } from '../../../test/harness/image-registry.ts';
import { BlockedAddresses } from '../../runtime/fences/blocked-addresses.ts';
import { guardedFetch } from '../../runtime/fences/guarded-fetch.ts';
import type { RemoteCode } from './extension-config.ts';
import { ModuleCache } from './module-cache.ts';
import { fetchedVersionOf } from './pull-policy.ts';
import { WasmCounts } from './wasm-counts.ts';
import { type WasmModules, wasmModuleWithEffects } from './wasm-module.effects.ts';

let folder: string;
let registry: ImageRegistry;
const user = { name: 'robot', password: 'secret' };
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-wasm-images-'));
  registry = await ImageRegistry.start({ authentication: 'bearer', user });
});
afterEach(() => {
  registry.stop();
  rmSync(folder, { recursive: true, force: true });
});

const moduleOf = (text: string): Buffer => Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d]), Buffer.from(text)]);

function modules(overrides: Partial<WasmModules> = {}): WasmModules {
  return {
    cache: new ModuleCache(join(folder, 'wasm')),
    fetch: guardedFetch(new BlockedAddresses({ allowed: ['127.0.0.0/8'] }), { isInsecure: () => true }),
    counts: new WasmCounts(),
    pullSecrets: new Map([[1, dockerConfig(registry.host, user.name, user.password)]]),
    isInsecure: () => true,
    dockerConfig: '',
    ...overrides,
  };
}

/** Content of the module's file, or the error of the first attempt. */
async function obtain(from: WasmModules, moduleFields: Partial<WasmModule> & Pick<WasmModule, 'url'>): Promise<string> {
  const module = { id: 1, stream: 1, extension: 'shop.a', sha256: '', version: '', ...moduleFields };
  const { promise, resolve } = Promise.withResolvers<string>();
  const input = { ...module, limits: { ...defaultFetchLimits, quickAttempts: 1 } };
  const proxy = setup({
    types: { events: {} as ModuleFetched | ModuleFailed },
    actors: { wasmModule: wasmModuleWithEffects(from) },
  }).createMachine({
    invoke: { id: 'module', src: 'wasmModule', input },
    on: {
      'module.fetched': { actions: ({ event }) => resolve(readFileSync(event.file).subarray(4).toString()) },
      'module.failed': { actions: ({ event }) => resolve(event.reason) },
    },
  });
  const actor = createActor(proxy).start();
  const result = await promise;
  actor.stop();
  return result;
}

const manifests = (): number => registry.requests.filter((one) => one.includes('/manifests/')).length;
const blobs = (): number => registry.requests.filter((one) => one.includes('/blobs/')).length;

test('pulls an image once, even across agents, unless its plugin changes and has the policy Always', async () => {
  const url = `oci://${registry.host}/team/plugin:v1`;
  registry.push('team/plugin', 'v1', [tarLayer(moduleOf('one'))]);
  const first = modules();
  expect(await obtain(first, { url })).toBe('one');
  const pulled = registry.requests.length;
  registry.push('team/plugin', 'v1', [tarLayer(moduleOf('two'))]);
  expect(await obtain(first, { url })).toBe('one');
  expect(await obtain(modules(), { url })).toBe('one');
  expect(registry.requests).toHaveLength(pulled);

  expect(await obtain(modules(), { url, version: 'shop.a 1' })).toBe('two');
  expect(await obtain(modules(), { url, version: 'shop.a 1' })).toBe('two');
  expect(blobs()).toBe(2);
  // Only the manifest is fetched, because the image is the same.
  expect(await obtain(modules(), { url, version: 'shop.a 2' })).toBe('two');
  expect(blobs()).toBe(2);
  const text = first.counts.text();
  expect(text).toContain('istio_agent_wasm_cache_lookup_count{hit="true"} 1');
  expect(text).toContain('istio_agent_wasm_cache_lookup_count{hit="false"} 1');
  expect(text).toContain('istio_agent_wasm_remote_fetch_count{result="success"} 1');
  expect(text).toContain('istio_agent_wasm_cache_entries 1');
});

test('requires the configured checksum to match the image, its manifest or its index', async () => {
  const digest = registry.push('plugin', 'v1', [wasmLayer(moduleOf('one'))]);
  const index = registry.pushIndex('plugin', 'all', [{ digest, platform: { os: 'linux', architecture: 'arm64' } }]);
  const url = `oci://${registry.host}/plugin`;
  for (const sha256 of [digest, index]) {
    expect(await obtain(modules({ cache: new ModuleCache(join(folder, sha256)) }), { url: `${url}:all`, sha256 })).toBe(
      'one',
    );
    expect(
      await obtain(modules({ cache: new ModuleCache(join(folder, `@${sha256}`)) }), { url: `${url}@sha256:${sha256}` }),
    ).toBe('one');
  }
  const wrongModules = modules();
  const sha256 = sha256Of(Buffer.from('another'));
  expect(await obtain(wrongModules, { url: `${url}:v1`, sha256 })).toBe(
    `SHA-256 of the image must be ${sha256}, got ${digest}`,
  );
  expect(await obtain(wrongModules, { url: `${url}@sha256:${digest}`, sha256 })).toContain(
    'SHA-256 must be that of the URL',
  );
  expect(wrongModules.counts.text()).toContain('remote_fetch_count{result="checksum_mismatched"} 1');
  // A cached image needs no registry.
  registry.stop();
  expect(
    await obtain(modules({ cache: new ModuleCache(join(folder, digest)) }), { url: `${url}:x`, sha256: digest }),
  ).toBe('one');
});

test("uses credentials of the pull secret if it exists, otherwise of the agent's Docker configuration", async () => {
  registry.push('plugin', 'v1', [wasmLayer(moduleOf('one'))]);
  const url = `oci://${registry.host}/plugin:v1`;
  expect(await obtain(modules({ pullSecrets: new Map() }), { url })).toMatch(
    /token service .*: status must be 200, got 401/,
  );
  const missingSecrets = new Map([[1, '']]);
  expect(await obtain(modules({ pullSecrets: missingSecrets }), { url })).toContain(
    'the control plane sent no pull secret',
  );
  expect(await obtain(modules({ pullSecrets: new Map([[1, '{"auths"']]) }), { url })).toBe(
    'pull secret must be a Docker configuration in JSON',
  );
  expect(manifests()).toBe(1);
  writeFileSync(join(folder, 'config.json'), dockerConfig(registry.host, user.name, user.password));
  expect(await obtain(modules({ pullSecrets: missingSecrets, dockerConfig: folder }), { url })).toBe('one');
});

test.each<[string, Partial<RemoteCode>, string]>([
  ['a tag other than latest', { url: 'oci://a.test/b:v1' }, ''],
  ['the tag latest', { url: 'oci://a.test/b:latest' }, 'shop.a 7'],
  ['no tag', { url: 'oci://a.test/b' }, 'shop.a 7'],
  ['no tag and IfNotPresent', { url: 'oci://a.test/b', pullPolicy: 'IfNotPresent' }, ''],
  ['a tag and Always', { url: 'oci://a.test/b:v1', pullPolicy: 'Always' }, 'shop.a 7'],
  ['a checksum and Always', { url: 'oci://a.test/b:v1', pullPolicy: 'Always', sha256: 'abc' }, ''],
  ['a URL', { url: 'https://a.test/b' }, ''],
  ['a URL and Always', { url: 'https://a.test/b', pullPolicy: 'Always' }, 'shop.a 7'],
  ['an invalid image', { url: 'oci://a.test/' }, ''],
])('fetches a plugin with %s again only if tag and policy require it', (_, code, version) => {
  const moduleFields = {
    extension: 'shop.a',
    sha256: '',
    url: '',
    pullPolicy: undefined,
    resourceVersion: '7',
    ...code,
  };
  expect(fetchedVersionOf(moduleFields)).toBe(version);
});
