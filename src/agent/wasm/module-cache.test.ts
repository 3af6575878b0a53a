import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ModuleCache } from './module-cache.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-wasm-cache-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const url = 'http://modules.test/a';
const moduleOf = (text: string): Buffer => Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d]), Buffer.from(text)]);
const sha256Of = (module: Buffer): string => createHash('sha256').update(module).digest('hex');

async function* inPieces(module: Buffer): AsyncGenerator<Uint8Array> {
  for (const byte of module) yield Buffer.from([byte]);
}

test('stores a module that arrives in chunks under its checksum, where another cache of the folder finds it', async () => {
  const module = moduleOf('code');
  const key = { url, sha256: sha256Of(module) };
  const cache = new ModuleCache(join(folder, 'wasm'));
  expect(await cache.lookup(key)).toBeUndefined();
  const file = await cache.store(key, inPieces(module));
  expect(file).toBe(join(folder, 'wasm', `${key.sha256}.wasm`));
  expect(readFileSync(file)).toEqual(module);
  expect(await new ModuleCache(join(folder, 'wasm')).lookup({ ...key, url: 'http://other.test/' })).toBe(file);
});

test('finds a module without a checksum by its URL', async () => {
  const cache = new ModuleCache(folder);
  const file = await cache.store({ url, sha256: '' }, inPieces(moduleOf('code')));
  expect(await cache.lookup({ url, sha256: '' })).toBe(file);
  expect(await cache.lookup({ url: `${url}2`, sha256: '' })).toBeUndefined();
});

test.each([
  ['a module with another checksum', moduleOf('code'), 'a'.repeat(64), /^SHA-256 must be a{64}, got [0-9a-f]{64}$/],
  ['a file that is not Wasm', Buffer.from('<html>'), '', 'not a Wasm module: must begin with 0061736d, got "3c68746d"'],
  ['an empty body', Buffer.alloc(0), '', 'not a Wasm module'],
  ['a module over the limit', moduleOf('x'.repeat(100)), '', 'module is larger than the limit of 64 bytes'],
])('rejects %s, keeps the previous module, and leaves no other file', async (_, module, sha256, message) => {
  const cache = new ModuleCache(folder, { maxModuleBytes: 64 });
  const previous = await cache.store({ url, sha256: '' }, inPieces(moduleOf('previous')));
  await expect(cache.store({ url, sha256 }, inPieces(module))).rejects.toThrow(message);
  expect(readdirSync(folder)).toHaveLength(1);
  expect(readFileSync(previous)).toEqual(moduleOf('previous'));
});

test('removes a damaged file', async () => {
  const module = moduleOf('code');
  const key = { url, sha256: sha256Of(module) };
  const file = join(folder, `${key.sha256}.wasm`);
  writeFileSync(file, moduleOf('half'));
  expect(await new ModuleCache(folder).lookup(key)).toBeUndefined();
  expect(existsSync(file)).toBe(false);
});

test('removes unused modules by age, then the least recently used by size, but never a module in use', async () => {
  let now = Date.now();
  const cache = new ModuleCache(folder, { maxCacheBytes: 250, maxUnusedMs: 1_000_000 }, () => now);
  const store = (name: string): Promise<string> =>
    cache.store({ url: name, sha256: '' }, inPieces(moduleOf('x'.repeat(96))));
  const lookup = (name: string) => cache.lookup({ url: name, sha256: '' });
  await store('a');
  await store('b');
  // Envoy may be about to read both modules, so neither is evicted.
  await expect(store('c')).rejects.toThrow('in use exceed the limit of 250 bytes');
  now += 120_000;
  await lookup('a');
  await store('c');
  expect(await lookup('b')).toBeUndefined();
  expect(await lookup('a')).toBeDefined();
  now += 2_000_000;
  await store('d');
  expect(readdirSync(folder)).toHaveLength(1);
});
