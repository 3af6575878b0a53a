import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { adminAt } from '../../../test/fixtures/real-envoy.ts';
import { drainListeners } from './drain-listeners.ts';

/** @returns the requests that the admin interface received */
async function orders(role: 'sidecar' | 'router', isReplaced: boolean, status = 200): Promise<string[]> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.writeHead(status).end('OK\n');
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port: adminPort } = server.address() as AddressInfo;
  const logic = drainListeners({ adminAt, role });
  await toPromise(createActor(logic, { input: { epoch: 0, baseId: 1, adminPort, replaced: isReplaced } }).start());
  return requests;
}

test('disconnects clients before draining listeners on a stop, and drains only the inbound listeners of a sidecar', async () => {
  expect(await orders('router', false)).toEqual(['POST /healthcheck/fail', 'POST /drain_listeners?graceful']);
  expect(await orders('sidecar', false)).toEqual([
    'POST /healthcheck/fail',
    'POST /drain_listeners?inboundonly&graceful',
  ]);
});

test('closes all listeners of a replaced Envoy before disconnecting its clients', async () => {
  for (const role of ['router', 'sidecar'] as const) {
    expect(await orders(role, true)).toEqual(['POST /drain_listeners', 'POST /healthcheck/fail']);
  }
});

test('fails if Envoy responds with an error status', async () => {
  await expect(orders('router', true, 404)).rejects.toThrow(/POST .*\/drain_listeners.*: status 404/);
});
