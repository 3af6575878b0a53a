import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { switchingProtocols } from '../../../test/fixtures/switching-protocols.ts';
import { AdminTimeoutError, createAdminClient } from './admin-client.ts';

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

async function listening(respond: Server): Promise<number> {
  server = respond;
  await new Promise<void>((resolve) => respond.listen(0, '127.0.0.1', resolve));
  return (respond.address() as AddressInfo).port;
}

test('rejects a response that is not HTTP', async () => {
  const port = await switchingProtocols();
  expect(await createAdminClient('127.0.0.1', port).state()).toMatchObject({
    responded: false,
    detail: expect.stringContaining('switches to another protocol'),
  });
});

test('limits the size of an endless response', async () => {
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  let sentBytes = 0;
  const port = await listening(
    createServer((_, response) => {
      const writeUntilFull = (): void => {
        while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
        sentBytes += chunk.length;
      };
      response.on('drain', writeUntilFull);
      writeUntilFull();
    }),
  );
  await expect(createAdminClient('127.0.0.1', port).get('/stats', 10_000)).rejects.toThrow(
    /response exceeds 67108864 bytes/,
  );
  expect(sentBytes).toBeLessThan(128 * 1024 * 1024);
});

test('times out if a response is interrupted (agent §4.4)', async () => {
  const port = await listening(
    createServer((_, response) => response.writeHead(200, { 'content-length': 9 }).write('LIVE')),
  );
  const state = await createAdminClient('127.0.0.1', port).state(100);
  expect(state).toMatchObject({ live: false, responded: false });
  expect(state.detail).toMatch(/no response within 100 ms/);
  await expect(createAdminClient('127.0.0.1', port).get('/stats', 100)).rejects.toThrow(AdminTimeoutError);
});
