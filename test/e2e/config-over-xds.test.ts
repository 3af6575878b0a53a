/**
 * Configuration from a source in Go, which encodes with istio.io/api and serves with Envoy's stubs, so no code of this project produces it. The
 * commands of docs/config-over-xds.md run unchanged.
 */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';

let directory: string;
let binary: string;
let reason = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'config-source-'));
  binary = join(directory, 'source');
  const cwd = join(packageRoot(), 'test/harness/go-config-source');
  const built = spawnSync('go', ['build', '-mod=readonly', '-o', binary, '.'], { cwd, encoding: 'utf8' });
  if (built.status !== 0) reason = built.error?.message ?? built.stderr.trim();
});
const sources: Source[] = [];
afterEach(async () => {
  await stopControlPlanes();
  for (const source of sources.splice(0)) source.kill();
});
afterAll(() => rmSync(directory, { recursive: true }));

class Source {
  address = '';
  readonly seen: { type: string; error: string }[] = [];
  readonly #process: ChildProcessWithoutNullStreams;

  constructor(listen = '127.0.0.1:0') {
    sources.push(this);
    this.#process = spawn(binary, [listen]);
    createInterface(this.#process.stdout).on('line', (line) => {
      const message = JSON.parse(line) as { address?: string; type: string; error: string };
      if (message.address !== undefined) this.address = message.address;
      else this.seen.push(message);
    });
  }

  async started(): Promise<this> {
    await eventually('the source listens', () => this.address !== '');
    return this;
  }

  send(...commands: string[]): void {
    this.#process.stdin.write(commands.map((command) => `${command}\n`).join(''));
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }
}

const cluster = (name: string, port = 80): string => `outbound|${port}||${name}.example.com`;
const put = (name: string, port = 80): string => `put shop/${name} ${name}.example.com ${port}`;
const clustersOf = async (plane: ControlPlane): Promise<string[]> => (await plane.subscribe()).clusters;
const waitUntilServed = (plane: ControlPlane, name: string, port = 80): Promise<true> =>
  eventually(`${name} is served`, async () => (await clustersOf(plane)).includes(cluster(name, port)));

it.each(['delta', 'sotw'])(
  'the control plane applies changes and deletions from a Go source, handles rejections and disconnects, and applies the empty state of a restarted source (%s)',
  async (protocol) => {
    expect(reason, 'this test needs Go (Debian: apt-get install golang) and a way to its modules').toBe('');
    const source = await new Source().started();
    source.send(`nodelta ${protocol === 'sotw' ? 'on' : 'off'}`, put('web'), put('cart'));
    const mesh = `configSources: [{address: "xds://${source.address}"}]\n`;
    const plane = new ControlPlane({}, {}, ({ root }) => writeFileSync(join(root, 'mesh'), mesh));
    await plane.ready();
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web'), cluster('cart')]));
    expect((await plane.get('/debug/configsourcez')).json()).toMatchObject([
      { state: 'connected', protocol, objects: 2 },
    ]);
    source.send(put('web', 81));
    await waitUntilServed(plane, 'web', 81);
    source.send('delete shop/cart');
    await eventually('cart is gone', async () => !(await clustersOf(plane)).includes(cluster('cart')));
    source.send(put('web', 70_000), put('more'));
    await waitUntilServed(plane, 'more');
    expect(await clustersOf(plane)).toContain(cluster('web', 81));
    await eventually('it is rejected', () =>
      source.seen.some(({ error }) => /ServiceEntry shop\/web: spec\.ports\[0\]\.number/.test(error)),
    );
    source.send(put('web', 82), 'close');
    await waitUntilServed(plane, 'web', 82);
    source.kill();
    await eventually('it is unreachable', async () => (await plane.get('/ready')).text.includes('is unreachable'));
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web', 82), cluster('more')]));
    const secondSource = await new Source(source.address).started();
    secondSource.send(`nodelta ${protocol === 'sotw' ? 'on' : 'off'}`);
    await eventually('deletions are paused', async () => (await plane.get('/ready')).text.includes('is paused'));
    expect(await clustersOf(plane)).toEqual(expect.arrayContaining([cluster('web', 82), cluster('more')]));
    secondSource.send(put('web', 83), put('more'));
    await waitUntilServed(plane, 'web', 83);
    await eventually('nothing is paused', async () => !(await plane.get('/ready')).text.includes('is paused'));
    expect(plane.deviations()).toEqual([]);
  },
);

it('the commands of docs/config-over-xds.md confirm deletions', async () => {
  expect(reason).toBe('');
  const page = readFileSync(join(packageRoot(), 'docs/config-over-xds.md'), 'utf8');
  const [, command = ''] = /```sh\n(pilot-discovery request .*)\n```/.exec(page) ?? [];
  const [, settings = ''] =
    /```yaml\n(configSources:\n {2}- address: xds:\/\/config\.example\.com:15010\n)```/.exec(page) ?? [];
  const source = await new Source().started();
  source.send(put('web'));
  const withAddress = (text: string): string => text.replaceAll('config.example.com:15010', source.address);
  const plane = new ControlPlane({}, {}, ({ root }) => writeFileSync(join(root, 'mesh'), withAddress(settings)));
  await plane.ready();
  expect(await clustersOf(plane)).toContain(cluster('web'));
  source.send('empty');
  await eventually('deletions are paused', async () => (await plane.get('/ready')).text.includes('is paused'));
  const [, method = '', path = ''] = /^pilot-discovery request (\S+) "(\S+)"$/.exec(withAddress(command)) ?? [];
  expect((await plane.get(path, { method })).text).toBe('Paused deletions applied\n');
  await eventually('web is gone', async () => !(await clustersOf(plane)).includes(cluster('web')));
});
