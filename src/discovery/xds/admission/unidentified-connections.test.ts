/** The server disconnects clients that send nothing, or too much, without delaying others. */
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServerCredentials, status } from '@grpc/grpc-js';
import { test as base, expect, onTestFinished, vi } from 'vitest';
import { clusterType, endpointType } from '../../../../machines/discovery/xds/ads-types.ts';
import { createAuthority } from '../../../../test/certs/authority.ts';
import {
  type GiveServer,
  givenNode,
  giveServers,
  openSubscribedStream,
} from '../../../../test/fixtures/given-server.ts';
import { eventuallyHolds } from '../../../../test/harness/eventually.ts';
import { standingClock } from '../../../../test/harness/standing-clock.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
const unidentified = { silentMs: 200 };

async function tcp(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Opens a connection and reads, to detect when the server closes it. */
async function openReading(port: number, localAddress?: string): Promise<Socket> {
  return (await tcp(port, localAddress)).resume();
}

async function http2(port: number, localAddress = '127.0.0.1'): Promise<ClientHttp2Session> {
  const socket = await tcp(port, localAddress);
  const session = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => socket });
  onTestFinished(() => session.destroy());
  session.on('error', () => {});
  await once(session, 'connect');
  return session;
}

function silentStream(session: ClientHttp2Session): ClientHttp2Stream {
  return session.request(headers).on('error', () => {});
}

/** The limit allows for a busy machine. By default, a client may be silent for 30 s. */
async function isClosed(connection: Socket | ClientHttp2Session, timeoutMs = 25_000): Promise<boolean> {
  const closing = connection.destroyed ? Promise.resolve(true) : once(connection, 'close').then(() => true);
  return Promise.race([closing, sleep(timeoutMs, false)]);
}

test.for<[string, (port: number) => Promise<Socket | ClientHttp2Session>]>([
  ['sends nothing', (port) => openReading(port)],
  [
    'sends only a part of its preface',
    async (port) => {
      const socket = await openReading(port);
      socket.write('PRI * HTTP/2.0\r\n');
      return socket;
    },
  ],
  ['opens no stream', (port) => http2(port)],
  [
    'opens a stream without a request',
    async (port) => {
      const session = await http2(port);
      silentStream(session);
      return session;
    },
  ],
])('The xDS server closes a connection that %s', async ([, openConnection], { start }) => {
  const { port } = await start({ limits: { unidentified } });
  const connection = await openConnection(port);
  expect(await isClosed(connection)).toBe(true);
});

test('The xDS server closes an unfinished TLS handshake', async ({ start }) => {
  const { server } = await start({ limits: { unidentified } });
  const { certificate, privateKey } = createAuthority().issue(['127.0.0.1']);
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(privateKey) };
  const { port } = await server.listen('127.0.0.1:0', ServerCredentials.createSsl(null, [pair]));
  const socket = await tcp(port);
  socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]));
  expect(await isClosed(socket)).toBe(true);
});

test('The xDS server keeps a connection with an identified node', async ({ start }) => {
  const clock = standingClock();
  const { port, client, source, server } = await start({ limits: { unidentified } });
  const silentConnection = await openReading(port);
  const stream = await openSubscribedStream(client());
  clock.pass(10 * unidentified.silentMs);
  expect(await isClosed(silentConnection)).toBe(true);
  const [type] = source.types.keys();
  source.set(type!, 'b');
  server.push(source.change(type!));
  expect((await stream.next()).resources).toHaveLength(2);
});

test('The xDS server limits unidentified connections of one address, and accepts another address', async ({
  start,
}) => {
  const { port, client } = await start({ limits: { unidentified: { maxIdlePerAddress: 20, maxIdleConnections: 30 } } });
  const floodSockets: Socket[] = [];
  for (let i = 0; i < 100; i++) floodSockets.push(await openReading(port, '127.0.0.9'));
  const openSockets = (): Socket[] => floodSockets.filter(({ destroyed }) => !destroyed);
  await eventuallyHolds(() => expect(openSockets().length).toBeLessThanOrEqual(20));
  expect(openSockets()).toHaveLength(20);
  await openSubscribedStream(client());
});

test('The xDS server does not count time in its admission queue as silence of the client', async ({ start }) => {
  const clock = standingClock();
  let arrivedCount = 0;
  const { port, client } = await start({
    limits: { unidentified, streamsPerSecond: 1 },
    isReady: () => ++arrivedCount > 0,
  });
  const floodSession = await http2(port);
  silentStream(floodSession);
  await vi.waitFor(() => expect(arrivedCount).toBe(1), { timeout: 60_000, interval: 5 });
  const stream = client().sotw();
  stream.send({ node: givenNode, typeUrl: clusterType });
  await vi.waitFor(() => expect(arrivedCount).toBe(2), { timeout: 60_000, interval: 5 });
  // The client waits in the queue for longer than the limit that closes the silent connection.
  clock.pass(3 * unidentified.silentMs);
  expect(await isClosed(floodSession)).toBe(true);
  clock.pass(1_000);
  await stream.next();
});

test('The xDS server processes each request that it read in advance once and in order', async ({ start }) => {
  const { source, client } = await start({ limits: { streamsPerSecond: 4 } });
  source.set(endpointType, 'a');
  client().sotw().send({ node: givenNode, typeUrl: clusterType });
  // Exceeds the HTTP/2 flow control window.
  const largeNode = { ...givenNode, metadata: { text: 'x'.repeat(200_000) } };
  const streams = [1, 2].map(() => client().sotw());
  for (const stream of streams) {
    stream.send({ node: largeNode, typeUrl: clusterType });
    stream.send({ typeUrl: endpointType, resourceNames: ['a'] });
    stream.halfClose();
  }
  for (const stream of streams) {
    expect([(await stream.next()).typeUrl, (await stream.next()).typeUrl]).toEqual([clusterType, endpointType]);
    expect((await stream.ended).code).toBe(0);
    expect(stream.responses).toHaveLength(2);
  }
});

test('The xDS server ends a waiting stream when the client ends it without a request', async ({ start }) => {
  const { client } = await start({ limits: { streamsPerSecond: 4 } });
  client().sotw().send({ node: givenNode, typeUrl: clusterType });
  const stream = client().sotw();
  stream.halfClose();
  await stream.ended;
});

test('The xDS server closes a rejected stream even if the client does not close it', async ({ start }) => {
  const { port } = await start({ limits: { streamsPerSecond: 1 } });
  const session = await http2(port);
  silentStream(session);
  const streams = [session.request(headers), session.request(headers)];
  for (const stream of streams) stream.on('error', () => {}).resume();
  for (const stream of streams) stream.write(Buffer.from([0, 0, 0, 0, 2, 0x22, 0]));
  const refusedStream = await Promise.race(
    streams.map(async (stream) => ({ stream, told: await once(stream, 'response') })),
  );
  expect(refusedStream.told[0]['grpc-status']).toBe('8');
  if (!refusedStream.stream.closed) await Promise.race([once(refusedStream.stream, 'close'), sleep(30_000)]);
  expect([refusedStream.stream.closed, refusedStream.stream.rstCode]).toEqual([true, constants.NGHTTP2_NO_ERROR]);
});

test('The xDS server serves a client during 2,000 silent streams from another address', async ({ start }) => {
  const clock = standingClock();
  const holds = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 60_000, interval: 5 });
  let arrivedCount = 0;
  let letIn = 0;
  const { port, client } = await start({
    // The burst is so high that the number of streams does not throttle the address.
    limits: { streamsPerSecond: 25, addressPace: { burst: 4_000 } },
    isReady: () => ++arrivedCount > 0,
    observer: { streamOpened: () => void letIn++ },
  });
  const session = await http2(port, '127.0.0.9');
  let refusedCount = 0;
  // On a busy machine, an admitted stream reaches its deadline before all others are rejected.
  const count = (response: Record<string, unknown>): void => {
    if (Number(response['grpc-status']) === status.RESOURCE_EXHAUSTED) refusedCount++;
  };
  for (let i = 0; i < 2_000; i++) silentStream(session).once('response', count);
  // One stream is admitted immediately, and as many wait as can be admitted within a second.
  await holds(() => expect([letIn, refusedCount]).toEqual([1, 1_974]));
  const servedStream = openSubscribedStream(client());
  await holds(() => expect(arrivedCount).toBe(2_001));
  for (let turn = 1; turn <= 2; turn++) {
    clock.pass(1_000 / 25);
    await holds(() => expect(letIn).toBe(1 + turn));
  }
  await servedStream;
  expect([letIn, refusedCount]).toEqual([3, 1_974]);
});

test.for<[string, (session: ClientHttp2Session) => void]>([
  ['pings', (session) => void session.ping(() => {})],
  [
    'streams that are cancelled at once',
    (session) =>
      session
        .request(headers)
        .on('error', () => {})
        .close(constants.NGHTTP2_CANCEL),
  ],
])('The xDS server closes a session that floods it with %s, and serves other clients', async ([, flood], { start }) => {
  const { port, client } = await start();
  const session = await http2(port);
  silentStream(session);
  const code = new Promise<number>((resolve) => session.on('goaway', resolve));
  let sentCount = 0;
  while (!session.closed && !session.destroyed && sentCount < 30_000) {
    try {
      flood(session);
    } catch {
      break;
    }
    if (++sentCount % 5 === 0) await sleep(0);
  }
  expect(await isClosed(session)).toBe(true);
  // GOAWAY precedes the close, but is lost if the server's kernel resets the connection because of unread frames.
  expect([constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_INTERNAL_ERROR, 'lost']).toContain(
    await Promise.race([code, sleep(1_000, 'lost')]),
  );
  await openSubscribedStream(client());
});
