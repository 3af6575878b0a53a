import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { adminInterfaces, freePort } from '../../../test/fixtures/real-envoy.ts';
import { isFree } from '../../../test/harness/free-ports.ts';
import { AdminInterfaces } from './admin-interfaces.ts';

const [first, spare] = [7, 8];

async function listenAt(port: number): Promise<void> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
}

/** Two neighbouring ports that are free. */
async function freePair(): Promise<number[]> {
  for (;;) {
    const port = await freePort();
    if (await isFree(port + 1)) return [port, port + 1];
  }
}

function withSpare(sparePort = 0): AdminInterfaces {
  const admins = adminInterfaces(15_000, sparePort);
  admins.spareIs(spare);
  return admins;
}

test('the first base id has the port that was configured, for every epoch', async () => {
  const admins = withSpare();
  expect(await admins.portFor({ epoch: 0, baseId: first })).toBe(15_000);
  expect(await admins.portFor({ epoch: 3, baseId: first })).toBe(15_000);
  expect(admins.of(first).address).toBe('127.0.0.1:15000');
});

test('the spare base id has a free port, the same for its epochs until there is an epoch 0 again', async () => {
  const admins = withSpare();
  const chosen = await admins.portFor({ epoch: 0, baseId: spare });
  expect(chosen).toBeGreaterThanOrEqual(16_000);
  expect(chosen).toBeLessThan(61_000);
  expect(await admins.portFor({ epoch: 1, baseId: spare })).toBe(chosen);
  expect(admins.of(spare).port).toBe(chosen);
});

test('a port that somebody has is not chosen, also where there was one that was free before', async () => {
  const [first, other] = (await freePair()) as [number, number];
  const freePorts = { first, end: first + 2 };
  const admins = new AdminInterfaces({ host: '127.0.0.1', port: 15_000, sparePort: 0, freePorts });
  admins.spareIs(spare);
  const chosen = await admins.portFor({ epoch: 0, baseId: spare });
  await listenAt(chosen);
  expect(await admins.portFor({ epoch: 1, baseId: spare })).toBe(chosen);
  const next = await admins.portFor({ epoch: 0, baseId: spare });
  expect([chosen, next].sort()).toEqual([first, other].sort());
  await listenAt(next);
  await expect(admins.portFor({ epoch: 0, baseId: spare })).rejects.toThrow(
    `no free port for Envoy's admin interface from ${first} to ${other}: name one with --spareAdminPort`,
  );
});

test('a port that was named for the spare base id is taken as it is', async () => {
  const admins = withSpare(15_005);
  expect(await admins.portFor({ epoch: 0, baseId: spare })).toBe(15_005);
});

test('without a spare base id every base id is the first', async () => {
  const admins = adminInterfaces(15_000);
  expect(await admins.portFor({ epoch: 0, baseId: spare })).toBe(15_000);
  expect(admins.isSpare(spare)).toBe(false);
});

test('who asks for an admin interface that no Envoy has yet has made a mistake', () => {
  expect(() => withSpare().of(spare)).toThrow('no Envoy of base id 8 has been prepared');
});
