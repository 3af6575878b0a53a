import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { adminAt } from '../../../test/fixtures/real-envoy.ts';
import { drainListeners } from './drain-listeners.ts';

/** @returns what an admin interface was told to do */
async function orders(role: 'sidecar' | 'router', replaced: boolean, status = 200): Promise<string[]> {
  const told: string[] = [];
  const server = createServer((request, response) => {
    told.push(`${request.method} ${request.url}`);
    response.writeHead(status).end('OK\n');
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port: adminPort } = server.address() as AddressInfo;
  const logic = drainListeners({ adminAt, role });
  await toPromise(createActor(logic, { input: { epoch: 0, baseId: 1, adminPort, replaced } }).start());
  return told;
}

test('clients are asked to leave, then listeners stop accepting gradually; a sidecar’s outgoing ones stay open', async () => {
  expect(await orders('router', false)).toEqual(['POST /healthcheck/fail', 'POST /drain_listeners?graceful']);
  expect(await orders('sidecar', false)).toEqual([
    'POST /healthcheck/fail',
    'POST /drain_listeners?inboundonly&graceful',
  ]);
});

test('an Envoy that is replaced closes all of its listeners at once, then asks its clients to leave', async () => {
  for (const role of ['router', 'sidecar'] as const) {
    expect(await orders(role, true)).toEqual(['POST /drain_listeners', 'POST /healthcheck/fail']);
  }
});

test('an order that Envoy does not take is an error', async () => {
  await expect(orders('router', true, 404)).rejects.toThrow(/POST .*\/drain_listeners.*: status 404/);
});
