/** WasmPlugins whose modules the agent fetches over HTTP and from registries, with real control plane, agent and Envoy. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { createAuthority } from '../certs/authority.ts';
import { eventually } from '../harness/eventually.ts';
import { dockerConfig, ImageRegistry, tarLayer, wasmLayer } from '../harness/image-registry.ts';
import { linesOf } from '../harness/logged-line.ts';
import { Mesh } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import { conclude } from './conclude.ts';
import { respondingModule } from './features/wasm-module.ts';

let mesh: Mesh | undefined;
let server: Server | undefined;
let registry: ImageRegistry | undefined;
let fetches = 0;
const folder = mkdtempSync(join(tmpdir(), 'chartpilot-wasm-images-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

afterEach(async () => {
  server?.close();
  registry?.stop();
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

const eventuallyResponds = (expected: number): Promise<unknown> =>
  eventually(`requests get ${expected}`, async () => (await status()) === expected);

/** Why the control plane counts the plugin as rejected; empty if it does not. */
async function rejection(): Promise<string> {
  const { httpPort } = mesh!.discovery!;
  const proxies = (await (await fetch(`http://127.0.0.1:${httpPort}/debug/syncz`)).json()) as {
    resources: Readonly<Record<string, { lastError: string }>>;
  }[];
  return proxies.flatMap(({ resources }) => Object.values(resources).map(({ lastError }) => lastError)).join('');
}

test.each(
  sized<[string, boolean][]>({
    short: [['delta', true]],
    full: [
      ['state of the world', false],
      ['delta', true],
    ],
  }),
)(
  'the agent fetches a module, keeps it while its server is unavailable, and reports a wrong checksum (%s)',
  async (_, delta) => {
    const code = respondingModule(418);
    const origin = await serve({ '/418': code, '/429': respondingModule(429) });
    mesh = await Mesh.create({ delta, sidecar: false, env: { ALLOWED_CIDRS_IN_WASM_URLS: '127.0.0.0/8' } });
    await mesh.startAll();
    await eventuallyResponds(200);
    const sha256 = createHash('sha256').update(code).digest('hex');
    applyPlugin({ url: `${origin}/moved`, sha256 });
    await eventuallyResponds(418);
    expect(await rejection()).toBe('');

    // A module with a different checksum is not used, and the plugin keeps its current module.
    applyPlugin({ url: `${origin}/429`, sha256 });
    await eventuallyResponds(418);
    const wrongDigest = 'a'.repeat(64);
    applyPlugin({ url: `${origin}/429`, sha256: wrongDigest });
    await eventually('the plugin is rejected', async () =>
      (await rejection()).includes(
        `extension demo.answers: failed to fetch Wasm module ${origin}/429: SHA-256 must be ${wrongDigest}`,
      ),
    );
    expect(await status()).toBe(418);
    applyPlugin({ url: `${origin}/429` });
    await eventuallyResponds(429);
    await eventually('the plugin is accepted', async () => (await rejection()) === '');

    // The module comes from the cache, because the server is closed.
    server!.close();
    server!.closeAllConnections();
    applyPlugin({ url: `${origin}/418`, sha256 });
    await eventuallyResponds(418);
    applyPlugin({ url: `${origin}/gone`, failStrategy: 'FAIL_OPEN' });
    await eventuallyResponds(200);
    await eventually('the plugin is rejected', async () => (await rejection()).includes(`${origin}/gone`));
  },
);

test('the agent does not fetch a module from a loopback address unless the network is allowed', async () => {
  const origin = await serve({ '/418': respondingModule(418) });
  mesh = await Mesh.create({ sidecar: false });
  await mesh.startAll();
  applyPlugin({ url: `${origin}/418`, failStrategy: 'FAIL_OPEN' });
  await eventually('the plugin is rejected', async () =>
    (await rejection()).includes('host 127.0.0.1 is a loopback address and not in ALLOWED_CIDRS_IN_WASM_URLS'),
  );
  expect(linesOf(mesh.gateway!.program.lines, 'module.failed')).toHaveLength(1);
  expect(fetches).toBe(0);
  await eventuallyResponds(200);
});

const user = { name: 'robot', password: 'a-password-of-the-registry' };

/** A private registry with TLS of an authority that the agent trusts, and the environment for the programs. */
async function privateRegistry(): Promise<NodeJS.ProcessEnv> {
  const authority = createAuthority();
  const file = join(folder, 'authority.pem');
  writeFileSync(file, authority.certificate);
  registry = await ImageRegistry.start({ tls: authority.issue(['127.0.0.1']), authentication: 'bearer', user });
  return { NODE_EXTRA_CA_CERTS: file, ALLOWED_CIDRS_IN_WASM_URLS: '127.0.0.0/8' };
}

function applyPullSecret(): void {
  const secret = {
    ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/dockerconfigjson' },
    metadata: { name: 'pull', namespace: 'demo' },
    stringData: { '.dockerconfigjson': dockerConfig(registry!.host, user.name, user.password) },
  };
  mesh!.directory.write('pull-secret.yaml', JSON.stringify(secret));
}

async function textAt(port: number, path: string): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}${path}`)).text();
}

test.each(
  sized<[string, boolean][]>({
    short: [['state of the world', false]],
    full: [
      ['state of the world', false],
      ['delta', true],
    ],
  }),
)(
  "the agent pulls a private image with the plugin's pull secret, which no other proxy receives (%s)",
  async (_, delta) => {
    const env = await privateRegistry();
    registry!.push('team/plugin', 'v1', [tarLayer(respondingModule(418))]);
    mesh = await Mesh.create({ delta, sidecar: false, mutualTls: true, env });
    await mesh.startAll();
    await eventuallyResponds(200);
    applyPullSecret();
    const image = `${registry!.host}/team/plugin`;
    applyPlugin({ url: `${image}:v1`, imagePullSecret: 'pull' });
    await eventuallyResponds(418);
    expect(await rejection()).toBe('');
    expect(registry!.authorizations.some((one) => one.startsWith('Basic '))).toBe(true);

    // The tag now refers to another image; the policy Always pulls it when the plugin changes.
    registry!.push('team/plugin', 'v1', [wasmLayer(respondingModule(429))]);
    applyPlugin({ url: `oci://${image}:v1`, imagePullSecret: 'pull', imagePullPolicy: 'Always' });
    await eventuallyResponds(429);

    const { adminPort, statusPort, traceFile, program } = mesh.gateway!;
    const secret = Buffer.from(`${user.name}:${user.password}`).toString('base64');
    const envoyDump = await textAt(adminPort, '/config_dump');
    expect(envoyDump).toContain('demo.answers');
    expect(envoyDump).not.toMatch(/ISTIO_META_WASM/);
    const { httpPort } = mesh.discovery!;
    const id = /"id": "(router~[^"]+)"/.exec(envoyDump)![1]!;
    const controlPlaneDump = await textAt(httpPort, `/debug/config_dump?proxyID=${id}`);
    expect(controlPlaneDump).toContain('[redacted]');
    for (const text of [envoyDump, controlPlaneDump, readFileSync(traceFile, 'utf8'), program.lines.join('\n')]) {
      expect(text.includes(secret)).toBe(false);
      expect(text.includes(user.password)).toBe(false);
    }
    const metrics = await textAt(statusPort, '/stats/prometheus');
    expect(metrics).toMatch(/^istio_agent_wasm_remote_fetch_count\{result="success"\} 2$/m);
    expect(metrics).toMatch(/^istio_agent_wasm_cache_entries 2$/m);
    expect(metrics).toMatch(/^istio_agent_wasm_config_conversion_count\{result="success"\} [2-9]$/m);
  },
);

test.each(
  sized<[string, boolean][]>({
    short: [['delta', true]],
    full: [
      ['state of the world', false],
      ['delta', true],
    ],
  }),
)(
  'a plugin whose first module is missing rejects all requests until the agent has fetched the module (%s)',
  async (_, delta) => {
    registry = await ImageRegistry.start();
    mesh = await Mesh.create({
      ...{ delta, sidecar: false },
      env: {
        ALLOWED_CIDRS_IN_WASM_URLS: '127.0.0.0/8',
        WASM_INSECURE_REGISTRIES: registry.host,
        WASM_HTTP_REQUEST_MAX_RETRIES: '1',
      },
    });
    await mesh.startAll();
    await eventuallyResponds(200);
    const image = `oci://${registry.host}/plugin`;
    applyPlugin({ url: `${image}:v1` });
    await eventuallyResponds(403);
    const reason = (tag: string): string =>
      `extension demo.answers: failed to fetch Wasm module ${image}:${tag}: http://${registry!.host}/v2/plugin/manifests/${tag}: status must be 200, got 404`;
    await eventually('the plugin is rejected', async () => (await rejection()).includes(reason('v1')));
    registry.push('plugin', 'v1', [wasmLayer(respondingModule(418))]);
    await eventuallyResponds(418);
    await eventually('the plugin is accepted', async () => (await rejection()) === '');

    // The previous module applies until the next one is fetched.
    applyPlugin({ url: `${image}:v2` });
    await eventually('the plugin is rejected', async () => (await rejection()).includes(reason('v2')));
    expect(await status()).toBe(418);
    registry.push('plugin', 'v2', [wasmLayer(respondingModule(429))]);
    await eventuallyResponds(429);
    await eventually('the plugin is accepted', async () => (await rejection()) === '');
  },
);
