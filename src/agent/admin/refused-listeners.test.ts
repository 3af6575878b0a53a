import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { RefusedListener } from '../../../machines/agent/status-protocol.ts';
import { envoyBinary, freePort, temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { type AdminResponse, createAdminClient } from './admin-client.ts';
import { getRejectedListeners } from './refused-listeners.ts';

test.each([
  ['invalid JSON', '<html>'],
  ['null', 'null'],
  ['a JSON list', '[]'],
  ['configurations that are not a list', '{"configs": {"length": 3}}'],
  ['configurations of invalid types', '{"configs": [null, 1, "x", [], {"name": 7, "error_state": {}}]}'],
  [
    'an error of an invalid type',
    '{"configs": [{"name": "x", "error_state": 3}, {"error_state": {"details": "nameless"}}]}',
  ],
  ['an empty dump', '{}'],
])('finds no rejected listeners in a response that is %s', async (_, body) => {
  expect((await getRejectedListeners({ get: async () => ({ status: 200, body }) })) ?? []).toEqual([]);
});

test('returns undefined if there is no valid response', async () => {
  const unreachable = async (): Promise<AdminResponse> => Promise.reject(new Error('connection refused'));
  expect(await getRejectedListeners({ get: unreachable })).toBeUndefined();
  expect(await getRejectedListeners({ get: async () => ({ status: 403, body: '{}' }) })).toBeUndefined();
});

test('returns the same 1,000 of many rejected listeners each time, 100 of them with their reason', async () => {
  const names = Array.from({ length: 3_000 }, (_, i) => `l${String(i).padStart(4, '0')}`);
  const configs = (order: readonly string[]): object[] => [
    { name: 'fine', active_state: { last_updated: 'x' } },
    ...order.map((name) => ({ name, error_state: { details: `no ${name}` } })),
  ];
  const listenersFrom = async (order: readonly string[]) =>
    (await getRejectedListeners({
      get: async () => ({ status: 200, body: JSON.stringify({ configs: configs(order) }) }),
    }))!;
  const reportedListeners = await listenersFrom(names);
  expect(reportedListeners).toHaveLength(1_000);
  expect(reportedListeners[99]).toEqual({ name: 'l0099', reason: 'no l0099' });
  expect(reportedListeners[100]).toEqual({ name: 'l0100', reason: '' });
  expect(await listenersFrom(names.toReversed())).toEqual(reportedListeners);
});

test('returns a rejected new listener of a live Envoy, but not a rejected update', async () => {
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
  const waitForRejected = async (names: string[]): Promise<RefusedListener[]> => {
    return eventually(`${names.join()} are refused`, async () => {
      const last = (await client.state()).live ? await getRejectedListeners(client) : undefined;
      if (last?.map(({ name }) => name).join() === names.join()) return last;
      throw new Error(`refused are ${JSON.stringify(last)}`);
    });
  };
  expect((await waitForRejected(['tls']))[0]!.reason).toContain(
    'Failed to load incomplete private key from path: /nowhere',
  );
  put(listener('plain', port), listener('tls', port + 1));
  await waitForRejected([]);
  put(listener('plain', port), listener('tls', port + 2, '/nowhere'));
  await sleep(500);
  await waitForRejected([]);
});

function tlsWith(certificate: string): object {
  const pair = { certificate_chain: { filename: certificate }, private_key: { filename: certificate } };
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
    common_tls_context: { tls_certificates: [pair] },
  };
  return { name: 'envoy.transport_sockets.tls', typed_config };
}
