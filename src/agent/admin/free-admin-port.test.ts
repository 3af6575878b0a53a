import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { isFree } from '../../../test/harness/free-ports.ts';
import { freeAdminPort } from './free-admin-port.ts';

const host = '127.0.0.1';

async function listenAt(port: number): Promise<void> {
  const server = createServer();
  server.listen(port, host);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
}

/** Two consecutive free ports. */
async function freePair(): Promise<[number, number]> {
  for (;;) {
    const port = await freePort();
    if (await isFree(port + 1)) return [port, port + 1];
  }
}

test('chooses a port that is neither ephemeral nor well-known', async () => {
  const chosenPort = await freeAdminPort(host, 15_000);
  expect(chosenPort).toBeGreaterThanOrEqual(16_000);
  expect(chosenPort).toBeLessThan(61_000);
});

test('does not choose a port that is in use, or belongs to the first base ID', async () => {
  const [first, other] = await freePair();
  const range = { first, end: first + 2 };
  for (let i = 0; i < 10; i++) expect(await freeAdminPort(host, other, range)).toBe(first);
  await listenAt(first);
  expect(await freeAdminPort(host, 15_000, range)).toBe(other);
  await expect(freeAdminPort(host, other, range)).rejects.toThrow(
    `no free port for the Envoy admin interface from ${first} to ${other}: set --spareAdminPort`,
  );
});
