/** Tests streams that are opened and reset immediately, on one connection after another (CVE-2023-44487). */

import { setTimeout as sleep } from 'node:timers/promises';
import { ServerCredentials } from '@grpc/grpc-js';
import { test as base, expect, onTestFinished, vi } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { createAuthority } from '../../../../test/certs/authority.ts';
import {
  type GiveServer,
  givenNode,
  giveServers,
  openSubscribedStream,
} from '../../../../test/fixtures/given-server.ts';
import { eventuallyHolds } from '../../../../test/harness/eventually.ts';
import {
  adsPath,
  flags,
  frame,
  literal,
  RawHttp2,
  requestHeaders,
  uint32,
} from '../../../../test/harness/raw-http2.ts';
import { msWithoutQueueing } from '../../../../test/harness/without-queueing.ts';
import { silentLogger } from '../../../runtime/output/log.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

const cancel = uint32(8);
const perConnection = 2_000;
const enhanceYourCalm = 11;
const floodAddress = '127.0.0.9';

interface Flood {
  readonly localAddress?: string;
  readonly path?: string;
  readonly tls?: boolean;
  readonly resets?: boolean;
}

/** @returns the closed connection, and whether the server had accepted it */
async function floodConnection(
  port: number,
  { localAddress = floodAddress, tls = false, ...floodOptions }: Flood = {},
) {
  const { path = adsPath, resets = true } = floodOptions;
  const connection = new RawHttp2(port, { localAddress, tls });
  onTestFinished(() => connection.close());
  const wasAccepted = await connection.begin();
  const block = Buffer.concat([requestHeaders(path), literal('x-more', 'y')]);
  for (let i = 0; i < perConnection && !connection.isOver; ) {
    const frames: Buffer[] = [];
    for (const end = i + 50; i < end; i++) {
      frames.push(frame('headers', flags.endHeaders, 2 * i + 1, block));
      if (resets) frames.push(frame('reset', 0, 2 * i + 1, cancel));
    }
    await connection.flush(...frames);
    await sleep(0);
  }
  await Promise.race([connection.closed, sleep(300)]);
  connection.close();
  return { connection, wasTaken: wasAccepted };
}

/** Records the server's reports about unidentified clients. */
function witness() {
  const refusals: string[] = [];
  const lines: string[] = [];
  const throttled = vi.fn();
  const observer = { connectionRefused: (reason: string) => void refusals.push(reason), addressHeldOff: throttled };
  const logger = {
    ...silentLogger,
    warn: (event: string, fields: object = {}) => void lines.push(`${event} ${JSON.stringify(fields)}`),
  };
  return { refused: refusals, lines, throttled, options: { observer, logger } };
}

test.for<[string, Flood]>([
  ['of an xDS method', {}],
  ['of an unknown method', { path: '/un/known' }],
])(
  'The xDS server throttles an address that opens connections and floods them with streams %s',
  async ([, flood], { start }) => {
    const { refused, lines, throttled, options } = witness();
    const { port, client, server, source } = await start(options);
    const neighbourStream = await openSubscribedStream(client());
    const acceptedFlags: boolean[] = [];
    for (let i = 0; i < 40; i++) acceptedFlags.push((await floodConnection(port, flood)).wasTaken);
    expect(acceptedFlags[0]).toBe(true);
    expect(acceptedFlags.filter((wasAccepted) => wasAccepted).length).toBeLessThan(20);
    expect(refused).toContain('address held off');
    expect(throttled).toHaveBeenCalled();
    expect(lines.filter((line) => line.includes(floodAddress))).toHaveLength(1);
    // Other addresses are not affected.
    source.set(clusterType, 'b');
    server.push(source.change(clusterType));
    expect((await neighbourStream.next()).resources).toHaveLength(2);
    await openSubscribedStream(client());
  },
);

test('The xDS server accepts connections from an address when its throttling ends', async ({ start }) => {
  const { port } = await start({ limits: { addressPace: { burst: 100, firstHoldMs: 3_000, maxHoldMs: 3_000 } } });
  await floodConnection(port);
  const refusedConnection = new RawHttp2(port, { localAddress: floodAddress });
  expect(await refusedConnection.begin()).toBe(false);
  await sleep(3_100);
  const acceptedConnection = new RawHttp2(port, { localAddress: floodAddress });
  onTestFinished(() => acceptedConnection.close());
  expect(await acceptedConnection.begin()).toBe(true);
});

test('The xDS server throttles silent streams like streams that are reset, with ENHANCE_YOUR_CALM', async ({
  start,
}) => {
  const { port } = await start({ limits: { addressPace: { burst: 60 } } });
  const { connection } = await floodConnection(port, { resets: false });
  expect(connection.goaway).toBe(enhanceYourCalm);
});

test('The xDS server keeps the streams of nodes at a throttled address, and accepts their reconnects within 1 s', async ({
  start,
}) => {
  const { throttled, options } = witness();
  const { port, client, server, source } = await start(options);
  const neighbourStream = await openSubscribedStream(client());
  await eventuallyHolds(() => expect(server.connections()[0]?.watches[0]?.nonceAcked).not.toBe(''));
  let isOver = false;
  const attack = Promise.all(
    Array.from({ length: 5 }, async () => {
      while (!isOver) await floodConnection(port, { localAddress: '127.0.0.1' });
    }),
  );
  await eventuallyHolds(() => expect(throttled).toHaveBeenCalled());
  for (const name of ['b', 'c', 'd']) {
    source.set(clusterType, name);
    server.push(source.change(clusterType));
    await neighbourStream.next();
    // Server, attackers and nodes run in this process.
    expect(await msWithoutQueueing([process.pid], () => openSubscribedStream(client()))).toBeLessThan(1_000);
  }
  isOver = true;
  await attack;
});

test('The xDS server serves a known node in time during 45 unused streams per second, and all clients afterwards', async ({
  start,
}) => {
  const { port, client, server } = await start({ limits: { streamsPerSecond: 25 } });
  await openSubscribedStream(client());
  await eventuallyHolds(() => expect(server.connections()[0]?.watches[0]?.nonceAcked).not.toBe(''));
  let isOver = false;
  const useless = async (): Promise<void> => {
    const connection = new RawHttp2(port);
    await connection.begin();
    await connection.flush(frame('headers', flags.endHeaders, 1, requestHeaders(adsPath)));
    await sleep(300);
    connection.close();
  };
  const attack = (async () => {
    const all: Promise<void>[] = [];
    for (; !isOver; await sleep(20)) all.push(useless());
    await Promise.all(all);
  })();
  await sleep(2_000);
  for (let i = 0; i < 8; i++) {
    expect(await msWithoutQueueing([process.pid], () => openSubscribedStream(client()))).toBeLessThan(2_000);
  }
  isOver = true;
  await attack;
  const all = (): Promise<unknown> => Promise.all(Array.from({ length: 20 }, () => openSubscribedStream(client())));
  expect(await msWithoutQueueing([process.pid], all)).toBeLessThan(2_000);
});

test('The xDS server throttles an address whose node never acknowledges responses', async ({ start }) => {
  const { throttled, options } = witness();
  const { port, client } = await start({ ...options, limits: { addressPace: { burst: 100, firstHoldMs: 5_000 } } });
  const stream = client().sotw();
  stream.send({ node: givenNode, typeUrl: clusterType });
  await stream.next();
  await floodConnection(port, { localAddress: '127.0.0.1' });
  expect(throttled).toHaveBeenCalledOnce();
  const throttledConnection = new RawHttp2(port);
  expect(await throttledConnection.begin()).toBe(false);
});

test('The xDS server throttles an address that resets streams on a TLS port', async ({ start }) => {
  const { refused, options } = witness();
  const { server } = await start(options);
  const { certificate, privateKey } = createAuthority().issue(['127.0.0.1']);
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(privateKey) };
  const { port } = await server.listen('127.0.0.1:0', ServerCredentials.createSsl(null, [pair]));
  const acceptedFlags: boolean[] = [];
  for (let i = 0; i < 20; i++) acceptedFlags.push((await floodConnection(port, { tls: true })).wasTaken);
  expect(acceptedFlags[0]).toBe(true);
  expect(acceptedFlags.at(-1)).toBe(false);
  expect(refused).toContain('address held off');
});

test('The xDS server throttles an address with unfinished TLS handshakes', async ({ start }) => {
  const { refused, options } = witness();
  const { server } = await start({ ...options, limits: { addressPace: { burst: 100, perSecond: 10 } } });
  const { certificate, privateKey } = createAuthority().issue(['127.0.0.1']);
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(privateKey) };
  const { port } = await server.listen('127.0.0.1:0', ServerCredentials.createSsl(null, [pair]));
  for (let i = 0; i < 20; i++) {
    const connection = new RawHttp2(port, { localAddress: floodAddress, tls: true });
    await connection.begin();
    connection.close();
  }
  expect(refused.length).toBeGreaterThan(4);
});

test('The xDS server raises the stream limit of a session for each identified node', async ({ start }) => {
  const { client, server } = await start();
  const one = client();
  const streams = [];
  for (let i = 0; i < 300; i++) {
    const stream = one.sotw();
    stream.send({ node: givenNode, typeUrl: clusterType });
    streams.push(stream.next());
  }
  await Promise.all(streams);
  expect(server.connections()).toHaveLength(300);
});
