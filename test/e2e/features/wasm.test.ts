import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { object, serviceEntry } from './harness/objects.ts';
import { respondingModule } from './wasm-module.ts';

let mesh: FeatureMesh;
const folder = mkdtempSync(join(tmpdir(), 'chartpilot-wasm-'));

beforeAll(async () => {
  // explain does not model the responses of plugins.
  mesh = await FeatureMesh.start({ proxies: { web: { labels: { app: 'web' } } }, explains: false });
});

afterAll(async () => {
  await mesh?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function plugin(spec: object): string {
  return object('extensions.istio.io/v1alpha1', 'WasmPlugin', 'shop', 'answers', spec);
}

/** A service, and the status of a request to it. */
async function shop() {
  const backend = await mesh.http('v1');
  const port = await mesh.port();
  const status = async (): Promise<number> => (await mesh.request('web', { port, host: 'cart.shop.test' })).status;
  return { port, status, entry: serviceEntry('cart.shop.test', { port, backends: [backend] }) };
}

test('a Wasm module from a file responds to requests, is replaced without a new listener, and is removed', async () => {
  const { port, status, entry } = await shop();
  for (const code of [418, 429]) writeFileSync(join(folder, `${code}.wasm`), respondingModule(code));
  const withCode = (code: number): string => `${entry}\n---\n${plugin({ url: `file://${folder}/${code}.wasm` })}`;
  await mesh.apply(withCode(418));
  expect(await status()).toBe(418);
  const listeners = () => mesh.envoy('web').stat('listener_manager.listener_create_success');
  const previous = await listeners();
  await mesh.apply(withCode(429));
  await eventually('the other code answers', async () => (await status()) === 429);
  expect(await listeners()).toBe(previous);
  await mesh.apply(
    `${entry}\n---\n${plugin({ url: `file://${folder}/418.wasm`, match: [{ ports: [{ number: port + 1 }] }] })}`,
  );
  expect(await status()).toBe(200);
});

test('a Wasm module is fetched from a service of the mesh, and must match the given hash', async () => {
  const { status, entry } = await shop();
  const code = respondingModule(418);
  const sha256 = createHash('sha256').update(code).digest('hex');
  // The first two requests fail.
  let fetches = 0;
  const store = await mesh.http('store', {
    respond: (_, response) => {
      response.statusCode = ++fetches > 2 ? 200 : 503;
      response.end(code);
    },
  });
  const modules = await mesh.port();
  const stored = serviceEntry('modules.shop.test', { port: modules, backends: [store] });
  const spec = { url: `http://modules.shop.test:${modules}/a.wasm`, sha256 };
  await mesh.apply(`${entry}\n---\n${stored}\n---\n${plugin(spec)}`);
  await eventually('the code answers', async () => (await status()) === 418);
});

test('an unavailable Wasm module blocks or allows all requests, as specified by the plugin', async () => {
  const { status, entry } = await shop();
  const spec = { url: 'oci://example.com/image:1' };
  await mesh.apply(`${entry}\n---\n${plugin(spec)}`);
  expect(await status()).toBe(403);
  await mesh.apply(`${entry}\n---\n${plugin({ ...spec, failStrategy: 'FAIL_OPEN' })}`);
  await eventually('requests pass', async () => (await status()) === 200);
});

/** A store of modules by path. It responds when it is released, or immediately for `/fast.wasm`. */
async function slowStore(modules: Readonly<Record<string, Buffer>>) {
  const released = Promise.withResolvers<void>();
  let waitingCount = 0;
  const store = await mesh.http('slow', {
    respond: ({ url }, response) => {
      if (url === '/fast.wasm') return void response.end(modules[url]);
      waitingCount++;
      return released.promise.then(() => void response.end(modules[url]));
    },
  });
  const port = await mesh.port();
  const spec = (path: string) => ({
    url: `http://slow.shop.test:${port}${path}`,
    sha256: createHash('sha256').update(modules[path]!).digest('hex'),
  });
  const entry = serviceEntry('slow.shop.test', { port, backends: [store] });
  return { spec, entry, release: released.resolve, fetches: () => waitingCount };
}

test.each([
  ['a module from a file', 'FAIL_CLOSE', () => ({ url: `file://${folder}/418.wasm` }), 418],
  ['a module that cannot be fetched', 'FAIL_CLOSE', () => ({ url: 'oci://example.com/image:1' }), 403],
  ['another fetched module', 'FAIL_CLOSE', (fetchedSpec: object) => fetchedSpec, 416],
  ['another fetched module', 'FAIL_OPEN', (fetchedSpec: object) => fetchedSpec, 416],
])('the effect of %s remains (%s) until its replacement is fetched', async (_, failStrategy, firstSpec, status) => {
  const { status: requestStatus, entry } = await shop();
  writeFileSync(join(folder, '418.wasm'), respondingModule(418));
  // Other tests fetched modules with other statuses, which Envoy caches.
  const replacement = 450 + failStrategy.length + (status % 10);
  const store = await slowStore({ '/a.wasm': respondingModule(replacement), '/fast.wasm': respondingModule(416) });
  const withPlugin = (spec: object) =>
    [entry, store.entry, plugin({ ...spec, failStrategy, phase: 'AUTHN' })].join('\n---\n');
  await mesh.apply(withPlugin(firstSpec(store.spec('/fast.wasm'))));
  await eventually('the plugin answers', async () => (await requestStatus()) === status);
  const pendingApply = mesh.apply(withPlugin(store.spec('/a.wasm')));
  await eventually('the code is fetched', () => store.fetches() > 0);
  for (let i = 0; i < 10; i++) expect(await requestStatus()).toBe(status);
  store.release();
  await pendingApply;
  await eventually('the other code answers', async () => (await requestStatus()) === replacement);
});

test('a Wasm module is fetched as soon as its service exists', async () => {
  const { status, entry } = await shop();
  const store = await slowStore({ '/a.wasm': respondingModule(470) });
  store.release();
  const fetchedPlugin = plugin(store.spec('/a.wasm'));
  await mesh.apply([entry, fetchedPlugin].join('\n---\n'));
  expect(await status()).toBe(403);
  await mesh.apply([entry, store.entry, fetchedPlugin].join('\n---\n'));
  await eventually('the code answers', async () => (await status()) === 470);
});

test('each of two plugins with fetched modules runs its own module', async () => {
  const [firstShop, secondShop] = [await shop(), await shop()];
  const store = await slowStore({ '/a.wasm': respondingModule(481), '/b.wasm': respondingModule(482) });
  store.release();
  const at = (name: string, path: string, port: number): string =>
    object('extensions.istio.io/v1alpha1', 'WasmPlugin', 'shop', name, {
      ...store.spec(path),
      match: [{ ports: [{ number: port }] }],
    });
  const other = secondShop.entry.replaceAll('cart', 'other');
  await mesh.apply(
    [
      firstShop.entry,
      other,
      store.entry,
      at('one', '/a.wasm', firstShop.port),
      at('two', '/b.wasm', secondShop.port),
    ].join('\n---\n'),
  );
  const status = async (port: number, host: string) => (await mesh.request('web', { port, host })).status;
  await eventually(
    'both answer',
    async () =>
      (await status(firstShop.port, 'cart.shop.test')) > 400 &&
      (await status(secondShop.port, 'other.shop.test')) > 400,
  );
  expect(await status(firstShop.port, 'cart.shop.test')).toBe(481);
  expect(await status(secondShop.port, 'other.shop.test')).toBe(482);
});
