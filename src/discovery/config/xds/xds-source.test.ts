/** A control plane that gets its configuration from another server over xDS. Each test has its own server. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import {
  ConfigSourceServer,
  type ConfigSourceServerOptions,
  entrySpec,
} from '../../../../test/harness/config-source-server.ts';
import { ControlPlane, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { linesOf } from '../../../../test/harness/logged-line.ts';

const servers: ConfigSourceServer[] = [];
const folders: string[] = [];
afterEach(async () => {
  await stopControlPlanes();
  for (const server of servers.splice(0)) server.stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function startServer(options: ConfigSourceServerOptions = {}): Promise<ConfigSourceServer> {
  const server = await ConfigSourceServer.start(options);
  servers.push(server);
  return server;
}

function createPlane(address: string, env: NodeJS.ProcessEnv = {}, extraSource = ''): ControlPlane {
  const mesh = `configSources: [{address: "${address}"${extraSource}}]\n`;
  return new ControlPlane({}, {}, ({ root }) => writeFileSync(join(root, 'mesh'), mesh), env);
}

const clustersOf = async (plane: ControlPlane): Promise<string[]> => (await plane.subscribe()).clusters;
const cluster = (name: string, port = 80): string => `outbound|${port}||${name}.example.com`;
const untilServed = (plane: ControlPlane, name: string, port?: number): Promise<true> =>
  eventually(`${name} is served`, async () => (await clustersOf(plane)).includes(cluster(name, port)));
const isNotServed = (plane: ControlPlane, name: string): Promise<true> =>
  eventually(`${name} is gone`, async () => !(await clustersOf(plane)).includes(cluster(name)));

interface Status {
  readonly address: string;
  readonly state: string;
  readonly protocol: string;
  readonly objects: number;
  readonly paused: readonly { kind: string; objects: number }[];
}
const statusOf = async (plane: ControlPlane): Promise<Status> =>
  ((await plane.get('/debug/configsourcez')).json() as Status[])[0]!;

const put = (server: ConfigSourceServer, ...names: string[]): void => {
  for (const name of names) server.put('ServiceEntry', `shop/${name}`, entrySpec(`${name}.example.com`));
};

test.each(['sotw', 'delta'] as const)(
  'objects of an xDS source are added, changed and deleted over %s',
  async (protocol) => {
    const server = await startServer();
    put(server, 'web', 'cart');
    const plane = createPlane(`${server.address}?protocol=${protocol}`);
    await plane.ready();
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web'), cluster('cart')]));
    server.put('ServiceEntry', 'shop/web', entrySpec('web.example.com', 81));
    await untilServed(plane, 'web', 81);
    server.delete('ServiceEntry', 'shop/cart');
    await isNotServed(plane, 'cart');
    expect(await statusOf(plane)).toMatchObject({ state: 'connected', protocol, objects: 1, paused: [] });
    expect(server.requests[0]).toMatchObject({ typeUrl: 'core/v1alpha1/MeshConfig', generator: 'api', protocol });
    expect(server.requests.every(({ typeUrl, nonce }) => typeUrl !== 'core/v1alpha1/MeshConfig' || nonce === '')).toBe(
      true,
    );
    expect(server.nacks).toEqual([]);
    expect(plane.deviations()).toEqual([]);
  },
);

test.each([
  ['does not support the delta protocol', { protocol: 'sotw' }],
  ['accepts delta streams but never responds', { protocol: 'silent delta' }],
] as const)('an xDS source falls back to the state-of-the-world protocol if the server %s', async (_, options) => {
  const server = await startServer(options);
  put(server, 'web');
  const plane = createPlane(server.address);
  await plane.ready();
  expect(await clustersOf(plane)).toContain(cluster('web'));
  expect((await statusOf(plane)).protocol).toBe('sotw');
  expect(plane.deviations()).toEqual([]);
});

test.each([
  ['empty responses', 'empty'],
  ['no responses', 'silent'],
] as const)(
  'an xDS source reads a server that serves only older API versions and sends %s for other versions',
  async (_, unknownTypes) => {
    const server = await startServer({ version: 'v1alpha3', unknownTypes, protocol: 'sotw' });
    put(server, 'web');
    // The silent server never responds for kinds without v1alpha3.
    const plane = createPlane(`${server.address}?optional=100ms`);
    await plane.ready();
    await untilServed(plane, 'web');
    expect(plane.deviations()).toEqual([]);
  },
);

test('an invalid object is rejected with object, field and reason, and its last valid version remains applied', async () => {
  const server = await startServer();
  put(server, 'web', 'cart');
  const plane = createPlane(server.address);
  await plane.ready();
  server.put(
    'ServiceEntry',
    'shop/web',
    { hosts: ['web.example.com'], ports: [{ number: 99_999, name: 'http' }] },
    { push: false },
  );
  put(server, 'more');
  await untilServed(plane, 'more');
  expect(await clustersOf(plane)).toContain(cluster('web'));
  expect(server.nacks.map(({ error }) => error)).toEqual([
    expect.stringMatching(/^1 object is rejected.*ServiceEntry shop\/web: spec\.ports\[0\]\.number: .*65535/),
  ]);
  expect(
    linesOf(plane.lines, 'object.rejected', { object: 'ServiceEntry shop/web', reason: /spec\.ports\[0\]/ }),
  ).toHaveLength(1);
  put(server, 'web');
  await eventually(
    'it is valid again',
    () => linesOf(plane.lines, 'config.recovered', { places: /ServiceEntry shop\/web/ }).length > 0,
  );
  expect(plane.deviations()).toEqual([]);
});

test('an invalid policy denies all requests until it is corrected if it has no earlier valid version', async () => {
  const server = await startServer();
  server.put('AuthorizationPolicy', 'shop/allow', {
    action: 'ALLOW',
    rules: [{ when: [{ key: 'no such key', values: ['x'] }] }],
  });
  const plane = createPlane(server.address);
  await plane.ready();
  const isClosed = async (): Promise<boolean> =>
    /allow[^\n]*is rejected/.test((await plane.get('/debug/push_status')).text);
  expect(await isClosed()).toBe(true);
  server.put('AuthorizationPolicy', 'shop/allow', { action: 'ALLOW', rules: [{}] });
  await eventually('it is open', async () => !(await isClosed()));
});

test('an unreachable source deletes no objects, and its changes apply when it is reachable again', async () => {
  const server = await startServer();
  put(server, 'web', 'cart');
  const plane = createPlane(server.address);
  await plane.ready();
  server.kill();
  await eventually('it is reported', async () => (await plane.get('/ready')).text.includes('is unreachable'));
  expect((await plane.get('/ready')).status).toBe(200);
  expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web'), cluster('cart')]));
  server.put('ServiceEntry', 'shop/web', entrySpec('web.example.com', 81), { push: false });
  await server.restart();
  await untilServed(plane, 'web', 81);
  expect(await clustersOf(plane)).toContain(cluster('cart'));
  expect(linesOf(plane.lines, 'config-source.unreachable')).toHaveLength(1);
  expect(linesOf(plane.lines, 'config-source.connected')).toHaveLength(1);
  expect(plane.deviations()).toEqual([]);
});

test.each(['sotw', 'delta'] as const)(
  'a slow source over %s delays only its own changes, and deletes no objects after a restart',
  async (protocol) => {
    const delayMs = 700;
    const server = await startServer({ delayMs });
    put(server, 'web', 'cart');
    const plane = createPlane(`${server.address}?protocol=${protocol}`);
    await plane.ready();
    await server.restart();
    await eventually('it is connected again', async () => (await statusOf(plane)).state === 'connected');
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web'), cluster('cart')]));
    server.put('ServiceEntry', 'shop/web', entrySpec('web.example.com', 81));
    expect(await clustersOf(plane)).toContain(cluster('web'));
    await untilServed(plane, 'web', 81);
    server.delete('ServiceEntry', 'shop/cart');
    await isNotServed(plane, 'cart');
    expect(await statusOf(plane)).toMatchObject({ protocol, objects: 1, paused: [] });
    expect(plane.deviations()).toEqual([]);
  },
);

test.each(['sotw', 'delta'] as const)(
  'a source that is empty after a restart deletes no objects over %s until the grace period ends or an operator confirms',
  async (protocol) => {
    const server = await startServer();
    put(server, 'web', 'cart');
    const plane = createPlane(`${server.address}?protocol=${protocol}`);
    await plane.ready();
    const keptObjects = new Map(server.objects);
    server.objects.clear();
    await server.restart();
    await eventually('deletions are paused', async () => (await statusOf(plane)).paused.length > 0);
    expect((await statusOf(plane)).paused).toEqual([{ kind: 'ServiceEntry', objects: 2 }]);
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web'), cluster('cart')]));
    expect((await plane.get('/ready')).text).toContain('deletion of 2 objects of kind ServiceEntry is paused');
    expect((await plane.get('/metrics')).text).toMatch(
      /pilot_config_source_paused_deletions\{[^}]*type="ServiceEntry"[^}]*\} 2/,
    );
    // The server fills its caches step by step.
    server.objects.set('ServiceEntry', new Map([...keptObjects.get('ServiceEntry')!].slice(0, 1)));
    server.push('ServiceEntry');
    put(server, 'new');
    await untilServed(plane, 'new');
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web'), cluster('cart')]));
    const path = `/debug/configsourcez?apply=${encodeURIComponent(server.address)}`;
    expect((await plane.get(`${path}%3Fprotocol%3D${protocol}`, { method: 'POST' })).status).toBe(200);
    await isNotServed(plane, 'cart');
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web'), cluster('new')]));
    expect(plane.deviations()).toEqual([]);
  },
);

test("paused deletions apply after the grace period if the source's state is unchanged", async () => {
  const server = await startServer();
  put(server, 'web');
  server.put('VirtualService', 'shop/web', { hosts: ['web.example.com'], http: [{ directResponse: { status: 200 } }] });
  const plane = createPlane(server.address, { PILOT_XDS_SOURCE_GRACE: '2s' });
  await plane.ready();
  server.objects.delete('ServiceEntry');
  await server.restart();
  await eventually('deletions are paused', () => linesOf(plane.lines, 'config-source.deletionsPaused').length > 0);
  expect(await clustersOf(plane)).toContain(cluster('web'));
  await isNotServed(plane, 'web');
  expect(linesOf(plane.lines, 'config-source.deletionsApplied', { kind: 'ServiceEntry', objects: '1' })).toHaveLength(
    1,
  );
  expect((await statusOf(plane)).objects).toBe(1);
});

test('the control plane waits for a source at start until all kinds are received, and reports this', async () => {
  const server = await startServer();
  put(server, 'web');
  const { port } = server;
  server.kill();
  const plane = createPlane(`xds://127.0.0.1:${port}`);
  await eventually('it waits', async () =>
    (await plane.get('/ready')).text.includes(`waiting for configuration source xds://127.0.0.1:${port}`),
  );
  await server.restart();
  await plane.ready();
  expect(await clustersOf(plane)).toContain(cluster('web'));
});

test('an optional source delays the start by no more than its configured timeout', async () => {
  const server = await startServer();
  server.kill();
  const plane = createPlane(`xds://127.0.0.1:${server.port}?optional=100ms`);
  await plane.ready();
  put(server, 'web');
  await server.restart();
  await untilServed(plane, 'web');
});

test('a cold start without the source applies the saved state', async () => {
  const state = mkdtempSync(join(tmpdir(), 'chartpilot-xds-state-'));
  folders.push(state);
  const server = await startServer();
  put(server, 'web', 'cart');
  const env = { PILOT_XDS_SOURCE_STATE_DIR: state };
  const address = `${server.address}?optional=500ms`;
  const first = createPlane(address, env);
  await first.ready();
  await first.stop();
  expect(readdirSync(state)).toHaveLength(1);
  server.kill();
  const secondPlane = createPlane(address, env);
  await secondPlane.ready();
  expect(await clustersOf(secondPlane)).toEqual(expect.arrayContaining([cluster('web'), cluster('cart')]));
  expect(linesOf(secondPlane.lines, 'config-source.restored', { objects: '2' })).toHaveLength(1);
  // The server is running again, but empty. Restored objects are kept.
  server.objects.clear();
  await server.restart();
  await eventually('deletions are paused', async () => (await statusOf(secondPlane)).paused.length > 0);
  expect(await clustersOf(secondPlane)).toContain(cluster('web'));
  expect(secondPlane.deviations()).toEqual([]);
});

test('a source can be added and removed at runtime', async () => {
  const server = await startServer();
  put(server, 'web');
  const plane = await ControlPlane.serving();
  const mesh = join(plane.root, 'mesh');
  writeFileSync(mesh, `configSources: [{address: "${server.address}"}]\n`);
  await untilServed(plane, 'web');
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-xds-'));
  folders.push(folder);
  writeFileSync(mesh, `configSources: [{address: "fs://${folder}"}]\n`);
  await isNotServed(plane, 'web');
  expect((await plane.get('/debug/configsourcez')).json()).toEqual([]);
  await eventually('its stream is closed', () => server.streams === 1);
  expect(plane.deviations()).toEqual([]);
});

test('a source with scheme mcp is ignored, with a warning that names the replacement', async () => {
  const plane = createPlane('mcp://127.0.0.1:9000');
  await plane.ready();
  expect(
    linesOf(plane.lines, 'option.configSourceIgnored', { reason: /mcp:\/\/ is not supported: use xds:\/\// }),
  ).toHaveLength(1);
});
