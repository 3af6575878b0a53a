import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { switchingProtocols } from '../../../test/fixtures/switching-protocols.ts';
import { msWithoutQueueing } from '../../../test/harness/without-queueing.ts';
import { createAdminClient } from '../admin/admin-client.ts';
import { askServingEnvoy, type ServingPorts } from './serving-envoy.ts';

const lives = { lives: true };
const isGone = { lives: false };

async function listening(answer: RequestListener): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

const answering = (status: number, body = '') => listening((_, response) => response.writeHead(status).end(body));
const silent = () => listening(() => {});
const adminAt = (port: number) => createAdminClient('127.0.0.1', port);
const ports = (port: number | undefined): ServingPorts => ({ host: '127.0.0.1', port });

test('the admin interface is believed where it answers', async () => {
  const admin = adminAt(await answering(503, 'DRAINING\n'));
  const others = ports(await answering(404));
  for (const at of ['admin', 'admin or port'] as const) {
    expect(await askServingEnvoy(at, admin, lives, others)).toMatchObject({
      by: 'admin',
      live: false,
      detail: 'DRAINING',
    });
  }
});

test('an admin port that is nobody’s says that Envoy is not ready where it should be its own, and nothing where it was lost', async () => {
  const admin = adminAt(await freePort());
  const others = ports(await answering(404));
  expect(await askServingEnvoy('admin', admin, lives, others)).toMatchObject({ by: 'admin', live: false });
  expect(await askServingEnvoy('admin or port', admin, lives, others)).toMatchObject({ by: 'port', live: true });
});

test('an admin port that somebody holds without answering is not waited for longer than a probe has time', async () => {
  const admin = adminAt(await silent());
  const others = ports(await answering(404));
  const taken = await msWithoutQueueing([process.pid], async () => {
    expect(await askServingEnvoy('admin or port', admin, lives, others)).toMatchObject({ by: 'port', live: true });
  });
  expect(taken).toBeLessThan(2_500);
});

test('any answer at the port will do, and none will not', async () => {
  const admin = adminAt(1);
  const nobody = await freePort();
  expect(await askServingEnvoy('port', admin, lives, ports(await answering(404)))).toMatchObject({ live: true });
  expect(await askServingEnvoy('port', admin, lives, ports(nobody))).toEqual({
    by: 'port',
    live: false,
    detail: `port ${nobody}: connection refused`,
  });
  expect(await askServingEnvoy('port', admin, lives, ports(await silent()))).toMatchObject({ live: false });
});

test('a port that answers with another protocol says nothing of Envoy', async () => {
  const word = await askServingEnvoy('port', adminAt(1), lives, ports(await switchingProtocols()));
  expect(word).toMatchObject({ by: 'port', live: false });
});

test('where no port is known its process has to live; one whose process is gone is not ready, whoever answers', async () => {
  const admin = adminAt(1);
  expect(await askServingEnvoy('port', admin, lives, ports(undefined))).toMatchObject({ live: true });
  for (const port of [undefined, await answering(404)]) {
    const word = await askServingEnvoy('port', admin, isGone, ports(port));
    expect(word).toEqual({ by: 'port', live: false, detail: 'process exited' });
  }
});
