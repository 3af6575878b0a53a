/** WasmPlugins whose modules the agent fetches over HTTP, with real control plane, agent and Envoy. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { linesOf } from '../harness/logged-line.ts';
import { Mesh } from '../harness/mesh.ts';
import { conclude } from './conclude.ts';
import { answering } from './features/wasm-module.ts';

let mesh: Mesh | undefined;
let server: Server | undefined;
let fetches = 0;

afterEach(async () => {
  server?.close();
  await conclude(mesh);
});

/** A server of modules on loopback, by path. */
async function serve(modules: Readonly<Record<string, Buffer>>): Promise<string> {
  fetches = 0;
  server = createServer(({ url = '' }, response) => {
    fetches++;
    if (url === '/moved') response.writeHead(302, { location: '/418' }).end();
    else response.writeHead(modules[url] === undefined ? 404 : 200).end(modules[url]);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function applyPlugin(spec: object): void {
  const plugin = {
    apiVersion: 'extensions.istio.io/v1alpha1',
    kind: 'WasmPlugin',
    metadata: { name: 'answers', namespace: 'demo' },
    spec: { selector: { matchLabels: { istio: 'ingressgateway' } }, ...spec },
  };
  writeFileSync(mesh!.directory.file('plugin.yaml'), JSON.stringify(plugin));
}

/** Status of a request through the gateway; 0 if there is no response. */
function status(): Promise<number> {
  const { host, port, authority } = mesh!.httpTarget;
  const { promise, resolve } = Promise.withResolvers<number>();
  get({ host, port, agent: false, timeout: 5_000, headers: { host: authority } }, (response) => {
    response.resume();
    resolve(response.statusCode!);
  }).on('error', () => resolve(0));
  return promise;
}

const answers = (expected: number): Promise<unknown> =>
  eventually(`requests get ${expected}`, async () => (await status()) === expected);

/** Why the control plane counts the plugin as rejected; empty if it does not. */
async function rejection(): Promise<string> {
  const { httpPort } = mesh!.discovery!;
  const proxies = (await (await fetch(`http://127.0.0.1:${httpPort}/debug/syncz`)).json()) as {
    resources: Readonly<Record<string, { lastError: string }>>;
  }[];
  return proxies.flatMap(({ resources }) => Object.values(resources).map(({ lastError }) => lastError)).join('');
}

test.each([false, true])(
  'the agent fetches a module, keeps it when its server is gone, and reports a wrong checksum (delta %s)',
  async (delta) => {
    const code = answering(418);
    const origin = await serve({ '/418': code, '/429': answering(429) });
    mesh = await Mesh.create({ delta, sidecar: false, env: { ALLOWED_CIDRS_IN_WASM_URLS: '127.0.0.0/8' } });
    await mesh.startAll();
    await answers(200);
    const sha256 = createHash('sha256').update(code).digest('hex');
    applyPlugin({ url: `${origin}/moved`, sha256 });
    await answers(418);
    expect(await rejection()).toBe('');

    // The module of another checksum is not used, and the plugin stays as it was.
    applyPlugin({ url: `${origin}/429`, sha256 });
    await answers(418);
    const wrong = 'a'.repeat(64);
    applyPlugin({ url: `${origin}/429`, sha256: wrong });
    await eventually('the plugin is rejected', async () =>
      (await rejection()).includes(
        `extension demo.answers: failed to fetch Wasm module ${origin}/429: SHA-256 must be ${wrong}`,
      ),
    );
    expect(await status()).toBe(418);
    applyPlugin({ url: `${origin}/429` });
    await answers(429);
    await eventually('the plugin is accepted', async () => (await rejection()) === '');

    // From the cache, although the server is gone.
    server!.close();
    server!.closeAllConnections();
    applyPlugin({ url: `${origin}/418`, sha256 });
    await answers(418);
    applyPlugin({ url: `${origin}/gone`, failStrategy: 'FAIL_OPEN' });
    await answers(200);
    expect(await rejection()).toContain(`${origin}/gone`);
  },
);

test('a module at an address of loopback is not fetched unless the network is allowed', async () => {
  const origin = await serve({ '/418': answering(418) });
  mesh = await Mesh.create({ sidecar: false });
  await mesh.startAll();
  applyPlugin({ url: `${origin}/418`, failStrategy: 'FAIL_OPEN' });
  await eventually('the plugin is rejected', async () =>
    (await rejection()).includes('host 127.0.0.1 is a loopback address and not in ALLOWED_CIDRS_IN_WASM_URLS'),
  );
  expect(linesOf(mesh.gateway!.program.lines, 'module.failed')).toHaveLength(1);
  expect(fetches).toBe(0);
  await answers(200);
});
