/** Tests the lifetime of connections with Node's HTTP/2 client. */

import { connect } from 'node:http2';
import { createConnection } from 'node:net';
import { test as base, expect, vi } from 'vitest';
import { clusterType, listenerType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type GiveServer, giveServers, openSubscribedStream } from '../../../../test/fixtures/given-server.ts';
import { eventuallyHolds } from '../../../../test/harness/eventually.ts';
import { msWithoutQueueing } from '../../../../test/harness/without-queueing.ts';
import { channelOptions } from '../ads-limits.ts';

const test = base.extend<{ start: GiveServer }>({
  start: ({ task: _ }, use) =>
    giveServers((give) =>
      use(async (options) => {
        const world = await give(options);
        world.source.set(listenerType, 'l');
        return world;
      }),
    ),
});

test('xDS server limits default to those of Istio', () => {
  expect(channelOptions({ maxConnectionAgeMs: 1_800_000 })).toMatchObject({
    'grpc.max_receive_message_length': 4 * 1024 * 1024,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': 100_000,
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    'grpc.max_connection_age_ms': 1_800_000,
    'grpc.max_connection_age_grace_ms': 10_000,
  });
});

test('the xDS server sends GOAWAY on an old connection and closes it after the grace period', async ({ start }) => {
  const world = await start({ limits: { maxConnectionAgeMs: 400, maxConnectionAgeGraceMs: 1_000 } });
  const session = connect(`http://127.0.0.1:${world.port}`);
  const startedMs = performance.now();
  const events: number[] = [];
  session.on('goaway', () => void events.push(performance.now() - startedMs));
  session.on('error', () => {});
  const sessionClosed = new Promise((resolve) => session.on('close', resolve));
  const stream = session.request({
    ':method': 'POST',
    ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  stream.on('error', () => {});
  await sessionClosed;
  const lived = performance.now() - startedMs;
  // The jitter is ±10 %. A busy machine adds delays.
  expect(events[0]).toBeGreaterThan(350);
  // GOAWAY may be late, but the connection is closed on time.
  expect(lived - events[0]!).toBeGreaterThan(400);
  expect(lived).toBeLessThan(400 * 1.1 + 1_000 + 20_000);
  const next = await openSubscribedStream(world.client());
  expect(next.responses[0]!.resources).toHaveLength(1);
});

test('the xDS server closes the connection of a client that does not respond to keepalives', async ({ start }) => {
  const world = await start({ limits: { keepaliveTimeMs: 100, keepaliveTimeoutMs: 150 } });
  const socket = createConnection(world.port, '127.0.0.1').resume();
  const startedMs = performance.now();
  const socketClosed = new Promise((resolve) => socket.on('close', resolve));
  // HTTP/2 preface with empty settings. The client does not respond to pings.
  socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0)]));
  await socketClosed;
  expect(performance.now() - startedMs).toBeGreaterThan(200);
});

test('the xDS server keeps the connection of a client that pings frequently', async ({ start }) => {
  const world = await start();
  const session = connect(`http://127.0.0.1:${world.port}`);
  const goaway = vi.fn();
  session.on('goaway', goaway);
  await new Promise((resolve) => session.on('connect', resolve));
  for (let i = 0; i < 5; i++) await new Promise<void>((resolve) => session.ping(() => resolve()));
  expect(goaway).not.toHaveBeenCalled();
  session.destroy();
});

test('the xDS server serves many streams on one connection', async ({ start }) => {
  const world = await start();
  const client = world.client();
  const streams = await Promise.all(Array.from({ length: 300 }, () => openSubscribedStream(client)));
  world.source.set(clusterType, 'b');
  world.server.push(world.source.change(clusterType));
  for (const stream of streams) expect((await stream.next()).resources).toHaveLength(2);
});

test('a drain of the xDS server ends 200 idle streams together, regardless of its time budget', async ({ start }) => {
  const world = await start();
  const streams: Awaited<ReturnType<typeof openSubscribedStream>>[] = [];
  while (streams.length < 200) {
    streams.push(...(await Promise.all(Array.from({ length: 20 }, () => openSubscribedStream(world.client())))));
  }
  await eventuallyHolds(() =>
    expect(world.server.connections().filter(({ watches }) => watches[0]?.nonceAcked === '')).toEqual([]),
  );
  expect(await msWithoutQueueing([process.pid], () => world.server.drain(60_000))).toBeLessThan(15_000);
  for (const stream of streams) expect((await stream.ended).code).toBe(0);
  expect(world.server.connections()).toEqual([]);
});

test('the xDS server reports the start and end of accepted clients only', async ({ start }) => {
  const events: string[] = [];
  const world = await start({
    onJoined: (connection) => void events.push(`joined ${connection}`),
    onLeft: (connection) => void events.push(`left ${connection}`),
  });
  const unidentified = world.client().sotw();
  unidentified.send({ typeUrl: clusterType });
  await unidentified.ended;
  const stream = await openSubscribedStream(world.client());
  expect(events).toEqual(['joined 2']);
  stream.cancel();
  await eventuallyHolds(() => expect(events).toEqual(['joined 2', 'left 2']));
});

test('the xDS server serves connections by number, and skips closed ones', async ({ start }) => {
  const world = await start();
  const [one, other] = [await openSubscribedStream(world.client()), await openSubscribedStream(world.client())];
  await eventuallyHolds(() =>
    expect(world.server.connections().every(({ watches }) => watches[0]!.nonceAcked !== '')).toBe(true),
  );
  world.source.set(clusterType, 'b');
  expect(world.server.serve([7, 2], world.source.change(clusterType))).toBe(1);
  expect((await other.next()).resources).toHaveLength(2);
  expect(await one.unexpected()).toEqual([]);
});
