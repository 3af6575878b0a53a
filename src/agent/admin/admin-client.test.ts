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

async function listening(answer: Server): Promise<number> {
  server = answer;
  await new Promise<void>((resolve) => answer.listen(0, '127.0.0.1', resolve));
  return (answer.address() as AddressInfo).port;
}

test('an answer with another protocol is none', async () => {
  const port = await switchingProtocols();
  expect(await createAdminClient('127.0.0.1', port).state()).toMatchObject({
    answered: false,
    detail: expect.stringContaining('switches to another protocol'),
  });
});

test('an answer that does not end is cut off at its limit of bytes', async () => {
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  let sent = 0;
  const port = await listening(
    createServer((_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
        sent += chunk.length;
      };
      response.on('drain', more);
      more();
    }),
  );
  await expect(createAdminClient('127.0.0.1', port).get('/stats', 10_000)).rejects.toThrow(
    /response exceeds 67108864 bytes/,
  );
  expect(sent).toBeLessThan(128 * 1024 * 1024);
});

test('§4.4: an answer that stops half way is none after its time', async () => {
  const port = await listening(
    createServer((_, response) => response.writeHead(200, { 'content-length': 9 }).write('LIVE')),
  );
  const state = await createAdminClient('127.0.0.1', port).state(100);
  expect(state).toMatchObject({ live: false, answered: false });
  expect(state.detail).toMatch(/no response within 100 ms/);
  await expect(createAdminClient('127.0.0.1', port).get('/stats', 100)).rejects.toThrow(AdminTimeoutError);
});
