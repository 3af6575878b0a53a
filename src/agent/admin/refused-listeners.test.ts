import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { envoyBinary, freePort, temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { type AdminAnswer, createAdminClient } from './admin-client.ts';
import { askRefusedListeners, LackingListeners, type RefusedListener } from './refused-listeners.ts';

/** An admin interface with these listeners: `fine` serves, the others were refused. */
function admin(): { get: () => Promise<AdminAnswer>; refused: string[]; asked: number; body?: string } {
  return {
    refused: [],
    asked: 0,
    async get() {
      this.asked++;
      const configs = [
        { name: 'fine', active_state: { last_updated: 'x' } },
        ...this.refused.map((name) => ({ name, error_state: { details: `no ${name}` } })),
      ];
      return { status: 200, body: this.body ?? JSON.stringify({ configs }) };
    },
  };
}

test.each([
  ['no JSON', '<html>'],
  ['null', 'null'],
  ['a list', '[]'],
  ['no list of configurations', '{"configs": {"length": 3}}'],
  ['configurations of other kinds', '{"configs": [null, 1, "x", [], {"name": 7, "error_state": {}}]}'],
  [
    'an error of another kind',
    '{"configs": [{"name": "x", "error_state": 3}, {"error_state": {"details": "nameless"}}]}',
  ],
  ['an empty dump', '{}'],
])('an answer with %s says of no listener that it was refused', async (_, body) => {
  expect((await askRefusedListeners({ get: async () => ({ status: 200, body }) })) ?? []).toEqual([]);
});

test('nobody’s answer, and a refusal to say, are none', async () => {
  const gone = async (): Promise<AdminAnswer> => Promise.reject(new Error('connection refused'));
  expect(await askRefusedListeners({ get: gone })).toBeUndefined();
  expect(await askRefusedListeners({ get: async () => ({ status: 403, body: '{}' }) })).toBeUndefined();
});

test('what an epoch lacks from its start on is told until it is there', async () => {
  const envoy = admin();
  const listeners = new LackingListeners(() => 0);
  listeners.begin();
  envoy.refused = ['tls'];
  expect(await listeners.look(envoy)).toBe('tls: no tls');
  // While its admin port is its child's.
  expect(listeners.problem).toContain('tls');
  envoy.refused = [];
  expect(await listeners.look(envoy)).toBeUndefined();
  expect(listeners.problem).toBeUndefined();
});

test('what is refused later is not held against an epoch, nor against its successor', async () => {
  let now = 0;
  const envoy = admin();
  const listeners = new LackingListeners(() => now);
  listeners.begin();
  expect(await listeners.look(envoy)).toBeUndefined();
  envoy.refused = ['late'];
  expect(await listeners.look(envoy)).toBeUndefined();
  expect(envoy.asked).toBe(1);
  now += 10_000;
  expect(await listeners.look(envoy)).toBeUndefined();
  expect(envoy.asked).toBe(2);
  listeners.begin();
  expect(await listeners.look(envoy)).toBeUndefined();
  listeners.begin();
  envoy.refused = ['late', 'tls'];
  expect(await listeners.look(envoy)).toContain('tls: no tls');
  // Of an Envoy that was not ready without it, the next one is not ready either.
  listeners.begin();
  expect(await listeners.look(envoy)).toBe('tls: no tls');
});

test('the real Envoy is live without a listener that it refused, and says which; an update that it refused is none', async () => {
  const folder = temporaryFolder();
  const [adminPort, port] = [await freePort(), await freePort()];
  const file = join(folder.path, 'lds.json');
  const put = (...resources: object[]): void => {
    writeFileSync(`${file}.new`, JSON.stringify({ resources }));
    renameSync(`${file}.new`, file);
  };
  const listener = (name: string, at: number, certificate?: string): object => ({
    '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
    name,
    address: { socket_address: { address: '127.0.0.1', port_value: at } },
    filter_chains: [{ ...(certificate !== undefined && { transport_socket: tlsWith(certificate) }) }],
  });
  put(listener('plain', port), listener('tls', port + 1, '/nowhere'));
  const bootstrap = join(folder.path, 'envoy.json');
  const address = { socket_address: { address: '127.0.0.1', port_value: adminPort } };
  writeFileSync(
    bootstrap,
    JSON.stringify({
      node: { id: 'x', cluster: 'x' },
      admin: { address },
      dynamic_resources: { lds_config: { path_config_source: { path: file } } },
    }),
  );
  const envoy = spawn(envoyBinary(), ['-c', bootstrap, '--disable-hot-restart', '--concurrency', '1', '-l', 'off'], {
    stdio: 'ignore',
  });
  onTestFinished(async () => {
    envoy.kill('SIGKILL');
    await once(envoy, 'exit');
    folder[Symbol.dispose]();
  });
  const client = createAdminClient('127.0.0.1', adminPort);
  const refused = async (names: string[]): Promise<RefusedListener[]> => {
    let last: RefusedListener[] | undefined;
    for (let waited = 0; waited < 20_000; waited += 50) {
      last = (await client.state()).live ? await askRefusedListeners(client) : undefined;
      if (last?.map(({ name }) => name).join() === names.join()) return last;
      await sleep(50);
    }
    throw new Error(`refused are ${JSON.stringify(last)}`);
  };
  expect((await refused(['tls']))[0]!.why).toContain('Failed to load incomplete private key from path: /nowhere');
  put(listener('plain', port), listener('tls', port + 1));
  await refused([]);
  put(listener('plain', port), listener('tls', port + 2, '/nowhere'));
  await sleep(500);
  await refused([]);
}, 60_000);

function tlsWith(certificate: string): object {
  const pair = { certificate_chain: { filename: certificate }, private_key: { filename: certificate } };
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
    common_tls_context: { tls_certificates: [pair] },
  };
  return { name: 'envoy.transport_sockets.tls', typed_config };
}
