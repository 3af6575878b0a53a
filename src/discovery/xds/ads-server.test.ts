/** Tests the ADS server over gRPC with a source that the test controls. */

import { test as base, describe, expect, vi } from 'vitest';
import { clusterType, endpointType, listenerType } from '../../../machines/discovery/xds/ads-types.ts';
import { type GiveServer, givenNode, giveServers, openSubscribedStream } from '../../../test/fixtures/given-server.ts';
import { eventuallyHolds } from '../../../test/harness/eventually.ts';
import { msWithoutQueueing } from '../../../test/harness/without-queueing.ts';
import { ScriptedSource } from '../../../test/simulation/scripted-source.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { createAdsServer } from './ads-server.ts';

const node = givenNode;
const code = { ok: 0, cancelled: 1, invalidArgument: 3, resourceExhausted: 8, unavailable: 14 };

/** `serve` starts a server whose source contains cluster `a`. Servers and clients end with the test. */
const test = base.extend<{ serve: GiveServer }>({ serve: ({ task: _ }, use) => giveServers(use) });

describe('a new xDS stream', () => {
  test('ends with UNAVAILABLE until the server is ready (row 22)', async ({ serve }) => {
    let isReady = false;
    const world = await serve({ isReady: () => isReady });
    for (const stream of [world.client().sotw(), world.client().delta()]) {
      const details = expect.stringContaining('[SERVER_NOT_READY]');
      expect(await stream.ended).toMatchObject({ code: code.unavailable, details });
    }
    isReady = true;
    await openSubscribedStream(world.client());
  });

  test('ends with INVALID_ARGUMENT if it has no node', async ({ serve }) => {
    const stream = (await serve()).client().sotw();
    stream.send({ typeUrl: clusterType });
    expect(await stream.ended).toMatchObject({ code: code.invalidArgument, details: expect.stringContaining('node') });
  });

  test('ends with INVALID_ARGUMENT and the reason if the source rejects its node', async ({ serve }) => {
    const world = await serve();
    world.source.nodeRejection = 'the node id needs four parts';
    const stream = world.client().delta();
    stream.send({ node, typeUrl: clusterType });
    expect(await stream.ended).toMatchObject({
      code: code.invalidArgument,
      details: 'the node id needs four parts [NODE_INVALID]',
    });
  });

  test('ends with RESOURCE_EXHAUSTED above the rate limit', async ({ serve }) => {
    const world = await serve({ limits: { streamsPerSecond: 1 } });
    const client = world.client();
    await openSubscribedStream(client);
    const waitingStream = client.sotw();
    const refusedStream = client.sotw();
    expect(await refusedStream.ended).toMatchObject({ code: code.resourceExhausted });
    waitingStream.send({ node, typeUrl: clusterType });
    await waitingStream.next();
  });

  test('ends with RESOURCE_EXHAUSTED after an oversized request, without affecting other streams', async ({
    serve,
  }) => {
    const world = await serve({ limits: { maxRequestBytes: 1_000 } });
    const client = world.client();
    const other = await openSubscribedStream(client);
    const stream = client.sotw();
    stream.send({ node, typeUrl: endpointType, resourceNames: ['x'.repeat(2_000)] });
    expect(await stream.ended).toMatchObject({ code: code.resourceExhausted });
    world.source.set(clusterType, 'b');
    world.server.push(world.source.change());
    expect((await other.next()).resources).toHaveLength(2);
  });

  test('ends with INVALID_ARGUMENT after invalid bytes', async ({ serve }) => {
    const stream = (await serve()).client().sotw();
    stream.sendRaw(Buffer.from([0x22, 0xff]));
    expect(await stream.ended).toMatchObject({ code: code.invalidArgument });
  });
});

test('an xDS response contains the identifier of the server', async ({ serve }) => {
  const world = await serve({ identifier: 'pilot-0' });
  const stream = world.client().sotw();
  stream.send({ node, typeUrl: clusterType });
  expect((await stream.next()).controlPlane).toMatchObject({ identifier: 'pilot-0' });
  const delta = world.client().delta();
  delta.send({ node, typeUrl: clusterType });
  expect((await delta.next()).controlPlane).toMatchObject({ identifier: 'pilot-0' });
});

describe('a push by the xDS server', () => {
  test('is sent to both streams of a node (row 13)', async ({ serve }) => {
    const world = await serve();
    const streams = [await openSubscribedStream(world.client()), await openSubscribedStream(world.client())];
    world.source.set(clusterType, 'b');
    world.server.push(world.source.change(clusterType));
    for (const stream of streams) expect((await stream.next()).resources).toHaveLength(2);
    expect(world.server.connections().map(({ id }) => id)).toEqual([`${node.id}-1`, `${node.id}-2`]);
  });

  test('is not sent to an unaffected client (row 19)', async ({ serve }) => {
    const records: TraceRecord[] = [];
    const recorder = createRecorder({ program: 'test' });
    recorder.observe((record) => records.push(record));
    const world = await serve({ recorder });
    const stream = await openSubscribedStream(world.client());
    world.source.set(listenerType, 'l');
    world.server.push(world.source.change(listenerType));
    expect(await stream.unexpected()).toEqual([]);
    expect(records.filter((record) => record.kind === 'event' && record.event.type === 'connection.push')).toEqual([]);
  });

  test('is sent to other clients even if a client never reads the response that it was sent (row 25)', async ({
    serve,
  }) => {
    const onResponseSent = vi.fn();
    // Long enough that rounds never exceed the ACK timeout.
    const world = await serve({ observer: { responseSent: onResponseSent }, limits: { ackTimeoutMs: 60_000 } });
    const stalledStream = await openSubscribedStream(world.client());
    stalledStream.stopReading();
    const otherStreams = [await openSubscribedStream(world.client()), await openSubscribedStream(world.client())];
    for (let round = 0; round < 20; round++) {
      world.source.set(clusterType, 'big', 3_000_000);
      world.server.push(world.source.change());
      for (const other of otherStreams) expect((await other.next()).resources).toHaveLength(2);
    }
    // These are 3 first responses, 20 pushes to two clients, and one to the client that does not read.
    expect(onResponseSent).toHaveBeenCalledTimes(3 + 2 * 20 + 1);
    stalledStream.cancel();
  });

  test('is reported when complete', async ({ serve }) => {
    const pushFinished = vi.fn();
    const world = await serve({ observer: { pushFinished } });
    await openSubscribedStream(world.client());
    world.server.push(world.source.change());
    await eventuallyHolds(() => expect(pushFinished).toHaveBeenCalledWith(expect.any(Number), 1));
  });
});

describe('the view and the observer of the xDS server', () => {
  test('show sent, acknowledged and rejected responses of each client', async ({ serve }) => {
    const world = await serve();
    const stream = world.client().sotw();
    stream.send({ node, typeUrl: clusterType });
    const { nonce, versionInfo } = await stream.next();
    stream.send({ typeUrl: clusterType, responseNonce: nonce, errorDetail: { code: 3, message: 'no such filter' } });
    stream.send({ typeUrl: endpointType, resourceNames: ['x', 'y'] });
    await eventuallyHolds(() => expect(world.server.connections()[0]?.watches).toHaveLength(2));
    expect(world.server.connections()).toEqual([
      {
        id: `${node.id}-1`,
        node: node.id,
        identity: { ...node, cluster: '', metadata: {} },
        connectedAt: expect.stringMatching(/^\d{4}-.*Z$/),
        peer: expect.stringContaining('127.0.0.1:'),
        protocol: 'sotw',
        state: 'streaming.delivery.up to date | streaming.clusters.usable | streaming.removals.none',
        unflushedBytes: 0,
        watches: [
          {
            typeUrl: clusterType,
            wildcard: true,
            names: [],
            nonceSent: nonce,
            nonceAcked: '',
            nonceRejected: nonce,
            versionSent: versionInfo,
            versionAcked: '',
            lastError: 'no such filter',
            sentAt: expect.stringMatching(/^\d{4}-.*Z$/),
            resourcesSent: 1,
            pending: 'nothing',
          },
          expect.objectContaining({ typeUrl: endpointType, names: ['x', 'y'], sentAt: undefined }),
        ],
      },
    ]);
  });

  test('report clients, responses, rejections and late ACKs', async ({ serve }) => {
    const observer = {
      clientConnected: vi.fn(),
      clientDisconnected: vi.fn(),
      responseSent: vi.fn(),
      responseRejected: vi.fn(),
      nonceExpired: vi.fn(),
    };
    const world = await serve({ observer });
    const stream = world.client().delta();
    stream.send({ node, typeUrl: clusterType });
    const { nonce } = await stream.next();
    stream.send({ typeUrl: clusterType, responseNonce: 'other' });
    stream.send({ typeUrl: clusterType, responseNonce: nonce, errorDetail: { code: 3, message: 'no' } });
    await eventuallyHolds(() => expect(observer.responseRejected).toHaveBeenCalledWith(clusterType, node.id, 'no'));
    expect(observer.nonceExpired).toHaveBeenCalledWith(clusterType, node.id);
    expect(observer.clientConnected).toHaveBeenCalledWith(node.id, 1);
    const response = { cause: 'request', resources: 1, bytes: expect.any(Number) };
    expect(observer.responseSent.mock.calls).toEqual([[clusterType, response]]);
    stream.cancel();
    await eventuallyHolds(() => expect(observer.clientDisconnected).toHaveBeenCalledWith(node.id, 0));
    expect(world.source.nodes).toEqual([]);
    expect(world.server.connections()).toEqual([]);
  });

  test('report a source error without ending the stream', async ({ serve }) => {
    const sourceFailed = vi.fn();
    const world = await serve({ observer: { sourceFailed } });
    const stream = await openSubscribedStream(world.client());
    world.source.getError = new Error('broken');
    world.server.push(world.source.change());
    await eventuallyHolds(() => expect(sourceFailed).toHaveBeenCalledWith(clusterType, node.id, world.source.getError));
    world.source.getError = undefined;
    world.source.set(clusterType, 'b');
    world.server.push(world.source.change());
    expect((await stream.next()).resources).toHaveLength(2);
  });
});

describe('the xDS server', () => {
  test('ends streams with OK during a drain, and rejects new ones', async ({ serve }) => {
    const world = await serve();
    const client = world.client();
    const streams = [
      await openSubscribedStream(client),
      await openSubscribedStream(client),
      await openSubscribedStream(world.client()),
    ];
    await Promise.all(streams.map((stream) => eventuallyHolds(() => expect(stream.requests).toBe(2))));
    await eventuallyHolds(() =>
      expect(world.server.connections().every(({ watches }) => watches[0]!.nonceAcked !== '')).toBe(true),
    );
    expect(await msWithoutQueueing([process.pid], () => world.server.drain(2_000))).toBeLessThan(1_900);
    expect(await Promise.all(streams.map(({ ended }) => ended))).toMatchObject(streams.map(() => ({ code: code.ok })));
    expect(await world.client().sotw().ended).toMatchObject({ code: code.unavailable });
  });

  test('rejects a stream that waits for admission with UNAVAILABLE during a drain', async ({ serve }) => {
    let arrivedCount = 0;
    let drained: Promise<void> | undefined;
    const isReady = (): boolean => {
      if (++arrivedCount === 2) queueMicrotask(() => (drained = world.server.drain(60_000)));
      return true;
    };
    const world: Awaited<ReturnType<GiveServer>> = await serve({ limits: { streamsPerSecond: 1 }, isReady });
    const servedStream = await openSubscribedStream(world.client());
    const waitingStream = world.client().sotw();
    expect(await waitingStream.ended).toMatchObject({
      code: code.unavailable,
      details: expect.stringContaining('[SERVER_SHUTTING_DOWN]'),
    });
    expect((await servedStream.ended).code).toBe(code.ok);
    await drained;
  });

  test('completes a drain within the time budget, even if clients do not respond', async ({ serve }) => {
    const world = await serve();
    world.source.set(clusterType, 'big', 3_000_000);
    const stalledStream = world.client().sotw();
    stalledStream.stopReading();
    stalledStream.send({ node, typeUrl: clusterType });
    await eventuallyHolds(() => expect(world.server.connections()).toHaveLength(1));
    expect(await msWithoutQueueing([process.pid], () => world.server.drain(300))).toBeLessThan(600);
  });

  test('sends no changes during a drain, not even to streams that await an acknowledgement', async ({ serve }) => {
    const world = await serve();
    const stream = world.client().sotw();
    stream.send({ node, typeUrl: clusterType });
    await stream.next();
    world.source.set(clusterType, 'b');
    const change = world.source.change();
    expect(world.server.serve([1], change)).toBe(1);
    const drained = world.server.drain(1_000);
    expect(world.server.serve([1], change)).toBe(0);
    await drained;
    expect(stream.responses).toHaveLength(1);
  });

  test('does not close a stream again that is being closed', async ({ serve }) => {
    const records: TraceRecord[] = [];
    const recorder = createRecorder({ program: 'test' });
    recorder.observe((record) => records.push(record));
    const world = await serve({ recorder });
    const stream = world.client().sotw();
    stream.stopReading();
    stream.send({ node, typeUrl: clusterType });
    await eventuallyHolds(() => expect(world.server.connections()).toHaveLength(1));
    const { id } = world.server.connections()[0]!;
    for (const _ of [1, 2, 3]) expect(world.server.disconnect(id)).toBe(true);
    await world.server.drain(300);
    expect(records.filter((one) => one.kind === 'event' && one.event.type === 'connection.drain')).toHaveLength(1);
  });

  test('completes a drain without streams immediately', async ({ serve }) => {
    const { server } = await serve();
    expect(await msWithoutQueueing([process.pid], () => server.drain(5_000))).toBeLessThan(1_000);
  });

  test('ends a connection above the maximum age with UNAVAILABLE', async ({ serve }) => {
    const world = await serve({ limits: { maxConnectionAgeMs: 1_500, maxConnectionAgeGraceMs: 500 } });
    const stream = await openSubscribedStream(world.client());
    expect(await stream.ended).toMatchObject({ code: code.unavailable });
    await eventuallyHolds(() => expect(world.server.connections()).toEqual([]));
  });

  test('reports a port in use with its address and a hint', async ({ serve }) => {
    const { port } = await serve();
    const other = createAdsServer({ source: new ScriptedSource(), logger: silentLogger });
    await expect(other.listen(`127.0.0.1:${port}`)).rejects.toMatchObject({
      code: 'PORT_IN_USE',
      message: `port in use: 127.0.0.1:${port}`,
      fields: { path: `127.0.0.1:${port}` },
      hint: expect.stringContaining('another address'),
    });
    other.close();
  });
});
