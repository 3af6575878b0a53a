import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { switchingProtocols } from '../../../test/fixtures/switching-protocols.ts';
import { msWithoutQueueing } from '../../../test/harness/without-queueing.ts';
import { createAdminClient } from '../admin/admin-client.ts';
import { probeServingEnvoy, type ServingPorts } from './serving-envoy.ts';

const running = { isAlive: true };
const exited = { isAlive: false };

async function listening(respond: RequestListener): Promise<number> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

const responding = (status: number, body = '') => listening((_, response) => response.writeHead(status).end(body));
const silent = () => listening(() => {});
const adminAt = (port: number) => createAdminClient('127.0.0.1', port);
const ports = (port: number | undefined): ServingPorts => ({ host: '127.0.0.1', port });

test('uses the state of the admin interface if it responds', async () => {
  const admin = adminAt(await responding(503, 'DRAINING\n'));
  const otherPorts = ports(await responding(404));
  for (const at of ['admin', 'admin or port'] as const) {
    expect(await probeServingEnvoy(at, admin, running, otherPorts)).toMatchObject({
      by: 'admin',
      live: false,
      detail: 'DRAINING',
    });
  }
});

test('reports not live if the admin port refuses connections, unless another process took the port', async () => {
  const admin = adminAt(await freePort());
  const otherPorts = ports(await responding(404));
  expect(await probeServingEnvoy('admin', admin, running, otherPorts)).toMatchObject({ by: 'admin', live: false });
  expect(await probeServingEnvoy('admin or port', admin, running, otherPorts)).toMatchObject({
    by: 'port',
    live: true,
  });
});

test('waits at most 2.5 s for an admin port that accepts connections but does not respond', async () => {
  const admin = adminAt(await silent());
  const otherPorts = ports(await responding(404));
  const taken = await msWithoutQueueing([process.pid], async () => {
    expect(await probeServingEnvoy('admin or port', admin, running, otherPorts)).toMatchObject({
      by: 'port',
      live: true,
    });
  });
  expect(taken).toBeLessThan(2_500);
});

test('reports live if the listener sends any HTTP response, and not live otherwise', async () => {
  const admin = adminAt(1);
  const closedPort = await freePort();
  expect(await probeServingEnvoy('port', admin, running, ports(await responding(404)))).toMatchObject({ live: true });
  expect(await probeServingEnvoy('port', admin, running, ports(closedPort))).toEqual({
    by: 'port',
    live: false,
    detail: `port ${closedPort}: connection refused`,
  });
  expect(await probeServingEnvoy('port', admin, running, ports(await silent()))).toMatchObject({ live: false });
});

test('reports not live if the listener responds with another protocol', async () => {
  const word = await probeServingEnvoy('port', adminAt(1), running, ports(await switchingProtocols()));
  expect(word).toMatchObject({ by: 'port', live: false });
});

test('checks the process if no listener port is known, and never reports live after its exit', async () => {
  const admin = adminAt(1);
  expect(await probeServingEnvoy('port', admin, running, ports(undefined))).toMatchObject({ live: true });
  for (const port of [undefined, await responding(404)]) {
    const word = await probeServingEnvoy('port', admin, exited, ports(port));
    expect(word).toEqual({ by: 'port', live: false, detail: 'process exited' });
  }
});
