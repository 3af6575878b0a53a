/** Tests a Consul server that sends arbitrary, endless or no data. Each request ends with a reason, and memory and requests are limited. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../../test/harness/eventually.ts';
import { Environment } from '../environment.ts';
import { CatalogSizes, maxCatalogBytes, readCatalog } from './catalog-queries.ts';
import { CatalogStore } from './catalog-store.ts';
import { CatalogWatch } from './catalog-watch.ts';
import { ConsulClient } from './consul-client.ts';
import { consulAccess, consulSettingsOf } from './consul-settings.ts';
import { maxReceivingBytes, maxResponseBytes, maxValues, ReceivedBodies } from './received-bodies.ts';

/** A client and a server with this behavior. */
async function createClient(respond: (response: ServerResponse, url: URL) => void): Promise<ConsulClient> {
  const server = createServer((request, response) => respond(response, new URL(request.url!, 'http://consul')));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new ConsulClient(
    consulAccess(consulSettingsOf({ consulServerURL: address }, new Environment({}, () => {}))),
    '',
  );
  onTestFinished(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  return client;
}

const { signal } = new AbortController();
const get = (client: ConsulClient) => client.get('catalog/nodes', { signal });

/** Sends the part repeatedly. */
function sendForEver(response: ServerResponse, chunk: Buffer): void {
  const send = (): void => {
    while (!response.destroyed && response.write(chunk));
    if (!response.destroyed) response.once('drain', send);
  };
  send();
}

it.each<[string, (response: ServerResponse) => void, RegExp]>([
  [
    'an endless string',
    (response) => sendForEver(response, Buffer.alloc(1024 * 1024, 'a')),
    /response exceeds 33554432 bytes/,
  ],
  [
    'an endless nested list',
    (response) => sendForEver(response, Buffer.alloc(64 * 1024, '[')),
    /more than 2000000 values/,
  ],
  [
    'a list of too many values',
    (response) => void response.end(`[${'1,'.repeat(maxValues)}1]`),
    /more than 2000000 values/,
  ],
  [
    'a truncated body',
    (response) => {
      response.writeHead(200, { 'content-length': '10' });
      response.write('[');
      setImmediate(() => response.destroy());
    },
    /aborted|closed before the end/,
  ],
  ['not JSON', (response) => void response.end('<html>'), /response must be JSON/],
  [
    'an endless error',
    (response) => {
      response.writeHead(500);
      sendForEver(response, Buffer.alloc(1024 * 1024, 'e'));
    },
    /response exceeds/,
  ],
])('a Consul response fails with a reason if it is %s', async (_, respond, reason) => {
  const client = await createClient(respond);
  await expect(get(client)).rejects.toMatchObject({ failure: { reason: expect.stringMatching(reason) } });
  await eventually('its connection is closed', () => client.usedConnections === 0);
});

it('a slow response times out like a missing response', async () => {
  const client = await createClient((response) => {
    const timer = setInterval(() => response.write(' '), 100);
    response.once('close', () => clearInterval(timer));
  });
  await expect(get(client)).rejects.toMatchObject({
    failure: { reason: expect.stringMatching(/no complete response in 5000 ms/) },
  });
});

it('concurrent responses share a size limit until they end', () => {
  const bodies = new ReceivedBodies();
  const chunk = Buffer.alloc(maxResponseBytes);
  const receivingBodies = Array.from({ length: maxReceivingBytes / maxResponseBytes }, () => bodies.begin());
  for (const body of receivingBodies) body.push(chunk);
  const lateBody = bodies.begin();
  expect(() => lateBody.push(Buffer.of(1))).toThrow(/exceed 134217728 bytes/);
  lateBody.release();
  receivingBodies[0]!.release();
  expect(() => bodies.begin().push(Buffer.of(1))).not.toThrow();
});

it('the size of a catalog is limited, excluding removed parts', () => {
  const sizes = new CatalogSizes();
  sizes.set('node/a', maxCatalogBytes);
  sizes.set('node/a', maxCatalogBytes - 1);
  expect(() => sizes.set('node/b', 2)).toThrow(/the catalog exceeds 268435456 bytes/);
  sizes.delete('node/a');
  expect(() => sizes.set('node/b', 3)).not.toThrow();
});

it.each(['NaN', '-1', '1e400', '', '9007199254740993', '0'])(
  'the response index %j is replaced by 1, so that the next query starts from the beginning',
  async (index) => {
    const client = await createClient((response) => {
      response.setHeader('x-consul-index', index);
      response.end('[]');
    });
    expect((await get(client)).index).toBe(1);
  },
);

it('a server whose index rises continuously is queried at a limited rate', async () => {
  let index = 1;
  let requests = 0;
  const client = await createClient((response) => {
    requests++;
    response.setHeader('x-consul-index', `${++index}`);
    response.end(JSON.stringify([]));
  });
  const store = new CatalogStore();
  const from = await readCatalog(client, {
    strategy: 'services',
    maxConnections: 9,
    isConsistent: false,
    signal,
  }).catch(() => undefined);
  expect(from, 'a list of services must be an object').toBeUndefined();
  const watch = new CatalogWatch({
    ...{ client, store, report: () => {}, pace: { burst: 5, perSecond: 10 } },
    order: { datacenter: '', strategy: 'services', maxConnections: 9 },
    readCatalog: {
      ...{ nodes: [], instancesByPart: new Map(), checks: [], isRestricted: false, sizes: new CatalogSizes() },
      indexes: new Map([['nodes', 1]]),
    },
  });
  const [previous, startedMs] = [requests, performance.now()];
  await eventually('it asked some times', () => requests - previous >= 10);
  watch.stop();
  const seconds = (performance.now() - startedMs) / 1_000;
  expect(requests - previous).toBeLessThanOrEqual(5 + 10 * seconds + 2);
});
