/** What WasmPlugins do, seen by requests. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { object, serviceEntry } from './harness/objects.ts';
import { answering } from './wasm-module.ts';

let mesh: FeatureMesh;
const folder = mkdtempSync(join(tmpdir(), 'chartpilot-wasm-'));

beforeAll(async () => {
  // What a plugin answers is none of what explain says.
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

test('code of a file answers requests, is replaced without a new listener, and goes again', async () => {
  const { port, status, entry } = await shop();
  for (const code of [418, 429]) writeFileSync(join(folder, `${code}.wasm`), answering(code));
  const withCode = (code: number): string => `${entry}\n---\n${plugin({ url: `file://${folder}/${code}.wasm` })}`;
  await mesh.apply(withCode(418));
  expect(await status()).toBe(418);
  const listeners = () => mesh.envoy('web').stat('listener_manager.listener_create_success');
  const before = await listeners();
  await mesh.apply(withCode(429));
  await eventually('the other code answers', async () => (await status()) === 429);
  expect(await listeners()).toBe(before);
  await mesh.apply(
    `${entry}\n---\n${plugin({ url: `file://${folder}/418.wasm`, match: [{ ports: [{ number: port + 1 }] }] })}`,
  );
  expect(await status()).toBe(200);
});

test('code is fetched from a service of the mesh, and must have the hash that is said', async () => {
  const { status, entry } = await shop();
  const code = answering(418);
  const sha256 = createHash('sha256').update(code).digest('hex');
  // It is not ready for the first two.
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

test('what nobody can fetch lets no request pass, or all of them, as the plugin says', async () => {
  const { status, entry } = await shop();
  const spec = { url: 'oci://example.com/image:1' };
  await mesh.apply(`${entry}\n---\n${plugin(spec)}`);
  expect(await status()).toBe(403);
  await mesh.apply(`${entry}\n---\n${plugin({ ...spec, failStrategy: 'FAIL_OPEN' })}`);
  await eventually('requests pass', async () => (await status()) === 200);
});
