import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { switchingProtocols } from '../../../test/fixtures/switching-protocols.ts';
import { msWithoutQueueing } from '../../../test/harness/without-queueing.ts';
import { createAdminClient } from '../admin/admin-client.ts';
import { probeServingEnvoy, type ServingPorts } from './serving-envoy.ts';

const runningProcess = { isAlive: true };
const exitedProcess = { isAlive: false };

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
const silentServer = () => listening(() => {});
const adminAt = (port: number) => createAdminClient('127.0.0.1', port);
const ports = (port: number | undefined): ServingPorts => ({ host: '127.0.0.1', port });

test('uses the state of the admin interface if it responds', async () => {
  const admin = adminAt(await responding(503, 'DRAINING\n'));
  const otherPorts = ports(await responding(404));
  for (const at of ['admin', 'admin or port'] as const) {
    expect(await probeServingEnvoy(at, admin, runningProcess, otherPorts)).toMatchObject({
      by: 'admin',
      live: false,
      detail: 'DRAINING',
    });
  }
});

test('reports not live if the admin port refuses connections, unless another process took the port', async () => {
  const admin = adminAt(await freePort());
  const otherPorts = ports(await responding(404));
  expect(await probeServingEnvoy('admin', admin, runningProcess, otherPorts)).toMatchObject({
    by: 'admin',
    live: false,
  });
  expect(await probeServingEnvoy('admin or port', admin, runningProcess, otherPorts)).toMatchObject({
    by: 'port',
    live: true,
  });
});

test('waits at most 2.5 s for an admin port that accepts connections but does not respond', async () => {
  const admin = adminAt(await silentServer());
  const otherPorts = ports(await responding(404));
  const spentMs = await msWithoutQueueing([process.pid], async () => {
    expect(await probeServingEnvoy('admin or port', admin, runningProcess, otherPorts)).toMatchObject({
      by: 'port',
      live: true,
    });
  });
  expect(spentMs).toBeLessThan(2_500);
});

test('reports live if the listener sends any HTTP response, and not live otherwise', async () => {
  const admin = adminAt(1);
  const closedPort = await freePort();
  expect(await probeServingEnvoy('port', admin, runningProcess, ports(await responding(404)))).toMatchObject({
    live: true,
  });
  expect(await probeServingEnvoy('port', admin, runningProcess, ports(closedPort))).toEqual({
    by: 'port',
    live: false,
    detail: `port ${closedPort}: connection refused`,
  });
  expect(await probeServingEnvoy('port', admin, runningProcess, ports(await silentServer()))).toMatchObject({
    live: false,
  });
});

test('reports not live if the listener responds with another protocol', async () => {
  const probeResult = await probeServingEnvoy('port', adminAt(1), runningProcess, ports(await switchingProtocols()));
  expect(probeResult).toMatchObject({ by: 'port', live: false });
});

test('checks the process if no listener port is known, and never reports live after its exit', async () => {
  const admin = adminAt(1);
  expect(await probeServingEnvoy('port', admin, runningProcess, ports(undefined))).toMatchObject({ live: true });
  for (const port of [undefined, await responding(404)]) {
    const probeResult = await probeServingEnvoy('port', admin, exitedProcess, ports(port));
    expect(probeResult).toEqual({ by: 'port', live: false, detail: 'process exited' });
  }
});
