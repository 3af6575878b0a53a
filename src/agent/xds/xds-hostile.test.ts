/** Tests the xDS proxy with hostile clients and control planes: resource limits and errors. */

import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import {
  type ClientHttp2Stream,
  createSecureServer,
  createServer,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { afterEach, expect, test } from 'vitest';
import { listenerType, proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { createAuthority } from '../../../test/certs/authority.ts';
import { collectGarbage } from '../../../test/harness/collect-garbage.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { frame } from '../../../test/harness/raw-http2.ts';
import { startXdsProxy, stopXdsProxies, type XdsProxyOptions } from '../../../test/harness/xds-proxy.ts';
import {
  type DeltaDiscoveryRequest,
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import type { GrpcError } from '../../runtime/grpc/call-status.ts';
import { GrpcConnection, onCallEnd } from '../../runtime/grpc/grpc-client.ts';
import { FrameReader, frameOf } from '../../runtime/grpc/grpc-frames.ts';
import { ServerCall } from '../grpc/grpc-server.ts';
import { DistributedRoots } from '../identity/distributed-roots.ts';
import { parseCertificates } from '../identity/root-set.ts';
import { methods } from './discovery-wire.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  stopXdsProxies();
  for (const end of cleanups.splice(0)) await end();
});

interface Upstream {
  readonly address: string;
  readonly calls: ServerCall[];
  readonly sessions: Set<ServerHttp2Session>;
}

/** A control plane with a handler for each stream. */
async function controlPlane(
  onCall: (call: ServerCall, index: number) => void,
  serverOptions?: SecureServerOptions,
): Promise<Upstream> {
  const calls: ServerCall[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const settings = { initialWindowSize: 65_535 };
  const server =
    serverOptions === undefined ? createServer({ settings }) : createSecureServer({ settings, ...serverOptions });
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => {});
    session.once('close', () => sessions.delete(session));
  });
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {});
    calls.push(new ServerCall(stream, headers, 1_000));
    onCall(calls.at(-1)!, calls.length - 1);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, calls, sessions };
}

const echo = (call: ServerCall): void => {
  call.stream.on('data', (chunk: Buffer) => {
    if (!call.write(chunk)) {
      call.stream.pause();
      call.stream.once('drain', () => call.stream.resume());
    }
  });
  call.stream.on('end', () => call.end('OK'));
};

interface Envoy {
  readonly connection: GrpcConnection;
  readonly stream: ClientHttp2Stream;
  readonly status: Promise<GrpcError | undefined>;
  bytes: number;
}

async function envoy(socket: string, name = '0@1'): Promise<Envoy> {
  const connection = await GrpcConnection.open({ address: { path: socket } });
  cleanups.push(() => connection.close());
  const stream = connection.start(methods.delta, { 'x-chartpilot-envoy': name });
  const status = new Promise<GrpcError | undefined>((resolve) => onCallEnd(stream, connection, resolve));
  return { connection, stream, status, bytes: 0 };
}

function countReceived(one: Envoy): Envoy {
  one.stream.on('data', (chunk: Buffer) => {
    one.bytes += chunk.length;
  });
  return one;
}

/** A message with this type URL, which is in field 4 of both requests and responses. */
const message = (typeUrl: string, padding = 0): Buffer => {
  const request = create(DeltaDiscoveryRequestSchema, { typeUrl, resourceNamesSubscribe: ['x'.repeat(padding)] });
  return Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request));
};
/** A message of this size that is valid as a request and as a response. */
const messageOfSize = (size: number): Buffer => {
  const text = (field: number, value: Buffer): Buffer => {
    const head = [(field << 3) | 2];
    for (let remaining = value.length; ; remaining >>>= 7) {
      head.push(remaining > 127 ? (remaining & 127) | 128 : remaining);
      if (remaining <= 127) break;
    }
    return Buffer.concat([Buffer.from(head), value]);
  };
  const type = text(4, Buffer.from('type.googleapis.com/envoy.x'));
  const anyMessage = text(1, Buffer.from('type.googleapis.com/envoy.x'));
  return Buffer.concat([text(2, text(2, Buffer.concat([anyMessage, text(2, Buffer.alloc(size))]))), type]);
};

const start = (address: string, options: XdsProxyOptions = {}) =>
  startXdsProxy(address, { limits: { dialMs: 500 }, ...options });

test('forwards messages of every length unchanged in both directions', async () => {
  const { address } = await controlPlane(echo);
  const { socket, activity } = await start(address);
  const one = await envoy(socket);
  const receivedChunks: Buffer[] = [];
  one.stream.on('data', (chunk: Buffer) => receivedChunks.push(chunk));
  const sentFrames = [0, 10, 60_000, 65_600, 70_000, 3_000_000, 5].map((size) => frameOf(messageOfSize(size)));
  for (const sentFrame of sentFrames) one.stream.write(sentFrame);
  const expected = Buffer.concat(sentFrames);
  await eventually('all is back', () => receivedChunks.reduce((sum, { length }) => sum + length, 0) >= expected.length);
  expect(Buffer.concat(receivedChunks).equals(expected)).toBe(true);
  expect([activity.requests, activity.responses]).toEqual([sentFrames.length, sentFrames.length]);
});

test('records each forwarded message with its nonce if enabled, and always records rejections', async () => {
  const typeUrl = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
  const response = (nonce: string, bytes: number): Buffer => {
    const resource = { typeUrl, value: Buffer.alloc(bytes) };
    const resources = [{ name: 'a', version: 'v', resource }];
    const message = create(DeltaDiscoveryResponseSchema, { typeUrl, nonce, resources });
    return frameOf(toBinary(DeltaDiscoveryResponseSchema, message));
  };
  const request = (responseNonce: string, errorDetail?: { message: string }): Buffer => {
    const message = create(DeltaDiscoveryRequestSchema, {
      typeUrl,
      responseNonce,
      ...(errorDetail && { errorDetail }),
    });
    return frameOf(toBinary(DeltaDiscoveryRequestSchema, message));
  };
  for (const recordsMessages of [true, false]) {
    const { address } = await controlPlane((call) => {
      call.stream.once('data', () => {
        for (const bytes of [10, 70_000, 3_000_000]) call.write(response(`n${bytes}`, bytes));
      });
    });
    const proxy = await start(address, { recordsMessages });
    const one = countReceived(await envoy(proxy.socket));
    one.stream.write(request(''));
    await eventually('all is there', () => proxy.activity.responses === 3);
    one.stream.write(request('n10'));
    one.stream.write(request('n70000', { message: 'no such thing' }));
    await eventually('the rejection is reported', () => proxy.events('resources.rejected').length === 1);
    expect(proxy.events('resources.rejected')).toEqual([
      { type: 'resources.rejected', typeUrl, nonce: 'n70000', reason: 'no such thing' },
    ]);
    const nonces = (type: string) => proxy.events(type).map((event) => [event.typeUrl, event.nonce]);
    expect(nonces('response.forwarded')).toEqual(
      recordsMessages ? ['n10', 'n70000', 'n3000000'].map((nonce) => [typeUrl, nonce]) : [],
    );
    expect(nonces('request.forwarded')).toEqual(
      recordsMessages ? ['', 'n10', 'n70000'].map((nonce) => [typeUrl, nonce]) : [],
    );
  }
});

test('ends the stream to the control plane normally when Envoy closes its side', async () => {
  const { address, sessions } = await controlPlane(echo);
  const { socket, events } = await start(address);
  const one = countReceived(await envoy(socket));
  one.stream.end(frameOf(messageOfSize(5)));
  expect((await one.status)?.code).toBe('UNAVAILABLE');
  await eventually('nothing is left', () => sessions.size === 0 && events('stream.ended').length === 1);
});

test("forwards the control plane's status to Envoy, and reports which credential was rejected", async () => {
  const { address } = await controlPlane((call) => call.end('UNAUTHENTICATED', 'the token has ended'));
  const shownDescription = 'the token a/b, written 5 s ago';
  const { socket, events } = await start(address, { credentials: { headers: {}, description: shownDescription } });
  const one = countReceived(await envoy(socket));
  const status = await one.status;
  expect(status?.message).toBe(`UNAUTHENTICATED: the token has ended (credentials: ${shownDescription})`);
  expect(events('upstream.failed')).toMatchObject([{ isRefusal: true }]);
});

test.each([
  ['not protobuf', frameOf(Buffer.alloc(100, 0xff)), /INVALID_ARGUMENT: invalid DiscoveryRequest from Envoy/],
  [
    'not gRPC',
    Buffer.from('hello, is anybody there?'),
    /INVALID_ARGUMENT: invalid DiscoveryRequest from Envoy: INTERNAL: compressed/,
  ],
])('ends only the stream that sends bytes that are %s, and reports the reason', async (_, bytes, reason) => {
  const { address } = await controlPlane(echo);
  const { socket } = await start(address);
  const other = countReceived(await envoy(socket, '1@1'));
  const one = countReceived(await envoy(socket));
  one.stream.write(bytes);
  expect((await one.status)?.message).toMatch(reason);
  other.stream.write(frameOf(messageOfSize(5)));
  await eventually('the other is served', () => other.bytes > 0);
});

test.each([
  ['garbage', (call: ServerCall) => call.write(Buffer.alloc(300, 0xfe))],
  ['messages that are not protobuf', (call: ServerCall) => call.write(frameOf(Buffer.alloc(300, 0xff)))],
])('disconnects from a control plane that sends %s', async (_, respond) => {
  const { address, sessions } = await controlPlane((call) => void respond(call));
  const { socket, activity } = await start(address);
  const one = countReceived(await envoy(socket));
  expect((await one.status)?.message).toMatch(/INTERNAL: invalid DiscoveryResponse from the control plane/);
  await eventually('it is left', () => sessions.size === 0);
  expect(activity.trouble).toMatch(/^INTERNAL: invalid DiscoveryResponse/);
});

test('drops responses of types that have no subscription', async () => {
  const { address } = await controlPlane((call) => {
    call.write(frameOf(message(proxyConfigType)));
    call.write(frameOf(messageOfSize(3)));
  });
  const { socket, activity } = await start(address);
  const one = countReceived(await envoy(socket));
  await eventually('Envoy has what is its own', () => one.bytes === frameOf(messageOfSize(3)).length);
  expect(activity.dropped).toBe(1);
});

test('limits memory for an Envoy that never reads, without delaying other clients', async () => {
  let sentBytes = 0;
  const chunk = frameOf(messageOfSize(60_000));
  const { address } = await controlPlane((call, index) => {
    if (index > 0) {
      echo(call);
      return;
    }
    const writeUntilFull = (): void => {
      while (call.write(chunk)) sentBytes += chunk.length;
      call.stream.once('drain', writeUntilFull);
    };
    writeUntilFull();
  });
  const { socket, events } = await start(address);
  await collectGarbage();
  const usedBytes = process.memoryUsage().rss;
  const silentEnvoy = await envoy(socket, '0@1');
  silentEnvoy.stream.pause();
  await eventually('the proxy has stopped reading', () => events('downstream.congested').length === 1);
  const initialBytes = sentBytes;
  await sleep(500);
  expect(sentBytes).toBe(initialBytes);
  const other = countReceived(await envoy(socket, '1@1'));
  other.stream.write(frameOf(messageOfSize(5)));
  await eventually('the other is served', () => other.bytes > 0);
  expect(process.memoryUsage().rss - usedBytes).toBeLessThan(40e6);
  silentEnvoy.stream.resume();
  await eventually('it goes on', () => events('downstream.relieved').length === 1);
});

test("delays Envoy's requests but not the responses if the control plane never reads", async () => {
  const respond = frameOf(messageOfSize(9));
  const { address } = await controlPlane((call) => {
    call.stream.pause();
    setTimeout(() => call.write(respond), 1_500).unref();
  });
  const { socket, events } = await start(address);
  const one = countReceived(await envoy(socket));
  for (let i = 0; i < 100; i++) one.stream.write(frameOf(messageOfSize(60_000)));
  await eventually('the proxy has stopped reading', () => events('upstream.congested').length === 1);
  await eventually('its answer arrives all the same', () => one.bytes === respond.length);
});

test('has eight open streams after thousands of streams, with bounded connections and no leaked files', async () => {
  const { address, calls, sessions } = await controlPlane(echo);
  const { socket, events } = await start(address);
  const filesBefore = readdirSync('/proc/self/fd').length;
  const connection = await GrpcConnection.open({ address: { path: socket } });
  let refusedCount = 0;
  for (let i = 0; i < 2_000; i++) {
    const stream = connection.start(methods.delta, { 'x-chartpilot-envoy': `${i % 500}` });
    stream.on('error', () => {});
    stream.once('close', () => refusedCount++);
    stream.resume();
    if (i % 16 === 0) await sleep(1);
  }
  await eventually('all but a few are over', () => refusedCount >= 1_984);
  expect(sessions.size).toBeLessThanOrEqual(8);
  expect(calls.length).toBeLessThan(200);
  connection.close();
  await eventually('all are over', () => events('stream.ended').length === events('downstream.opened').length);
  await eventually('no file is left', () => readdirSync('/proc/self/fd').length <= filesBefore);
  const one = countReceived(await envoy(socket));
  one.stream.write(frameOf(messageOfSize(5)));
  await eventually('the next one is served', () => one.bytes > 0);
});

async function tcp(onSocket: (socket: Socket) => void): Promise<{ address: string; connections: () => number }> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    onSocket(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => sockets.length };
}

test.each([
  ['closes each connection immediately', (socket: Socket) => void socket.end()],
  ['resets each connection', (socket: Socket) => void socket.resetAndDestroy()],
  ['responds with HTTP/1.1', (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\n')],
  ['sends nothing', () => {}],
])("retries a control plane that %s with bounded frequency while Envoy's stream stays open", async (_, onSocket) => {
  const { address, connections } = await tcp(onSocket);
  const { socket, activity } = await start(address);
  const one = countReceived(await envoy(socket));
  const from = performance.now();
  await sleep(3_000);
  await eventually('it was tried again', () => connections() >= 2);
  // Backoff of at least 0.1, 0.2, 0.4 and 0.75 s.
  expect(connections()).toBeLessThanOrEqual(4 + Math.ceil((performance.now() - from - 700) / 750));
  expect(one.stream.closed).toBe(false);
  expect(activity.trouble).not.toBe('');
});

test("ends Envoy's stream when the control plane vanishes without closing the connection", async () => {
  const { address } = await tcp((socket) => void socket.resume().write(frame('settings', 0, 0)));
  const { socket } = await start(address, { limits: { keepAliveMs: 100, keepAliveTimeoutMs: 100 } });
  const one = countReceived(await envoy(socket));
  expect((await one.status)?.message).toContain('no HTTP/2 ping response');
});

test('leaves no connection or request if a stream is closed before the control plane is connected', async () => {
  const { address, connections } = await tcp((socket) => void socket.end());
  const { socket, events } = await start(address);
  const one = await envoy(socket);
  await eventually('it was tried', () => connections() >= 1);
  one.connection.close();
  await eventually('it is over', () => events('stream.ended').length === 1);
  const tried = connections();
  await sleep(2_000);
  expect(connections()).toBe(tried);
});

test('subscribes after the first request for listeners, and acknowledges each response', async () => {
  const seenMessages: Buffer[] = [];
  const { address } = await controlPlane((call) => {
    const reader = new FrameReader({ wholeBytes: 1_000_000 });
    call.stream.on('data', (chunk: Buffer) =>
      reader.push(chunk, ({ bytes }) => seenMessages.push(Buffer.from(bytes.subarray(5)))),
    );
  });
  const { socket } = await start(address, { trustBundles: true, nameTables: async () => {} });
  const one = countReceived(await envoy(socket));
  one.stream.write(frameOf(message('type.googleapis.com/envoy.config.cluster.v3.Cluster')));
  one.stream.write(frameOf(message(listenerType)));
  one.stream.write(frameOf(message(listenerType)));
  await eventually('all of them have come', () => seenMessages.length === 5);
  const types = seenMessages.map((bytes) => /(Cluster|Listener|NameTable|ProxyConfig)/.exec(String(bytes))?.[0]);
  expect(types).toEqual(['Cluster', 'Listener', 'NameTable', 'ProxyConfig', 'Listener']);
});

const { certificate: root } = createAuthority();

/** A control plane that sends these roots. */
async function rootsFrom(sentRoots: string[], serverOptions?: SecureServerOptions) {
  const responses: DeltaDiscoveryRequest[] = [];
  const resource = anyPack(ProxyConfigSchema, create(ProxyConfigSchema, { caCertificatesPem: sentRoots }));
  const response = create(DeltaDiscoveryResponseSchema, {
    typeUrl: proxyConfigType,
    nonce: 'n',
    resources: [{ name: 'roots', resource }],
  });
  const { address } = await controlPlane((call) => {
    const reader = new FrameReader({ wholeBytes: 1_000_000 });
    call.stream.on('data', (chunk: Buffer) =>
      reader.push(chunk, ({ bytes }) => {
        const request = fromBinary(DeltaDiscoveryRequestSchema, bytes.subarray(5));
        if (request.typeUrl !== proxyConfigType) return;
        if (request.responseNonce === '') call.write(frameOf(toBinary(DeltaDiscoveryResponseSchema, response)));
        else responses.push(request);
      }),
    );
  }, serverOptions);
  return { address, answers: responses };
}

test.each([
  {
    what: 'without a valid certificate',
    sent: ['none', root.slice(0, 200)],
    refused: /no valid certificate/,
    reported: [],
  },
  { what: 'with one valid certificate', sent: ['none', root], refused: undefined, reported: [root] },
])('reports only the valid certificates of roots $what', async ({ sent, refused, reported }) => {
  const { address, answers: responses } = await rootsFrom(sent);
  const proxy = await start(address, { trustBundles: true, bundles: 'served' });
  countReceived(await envoy(proxy.socket)).stream.write(frameOf(message(listenerType)));
  await eventually('they are answered', () => responses.length === 1);
  expect(responses[0]!.responseNonce).toBe('n');
  expect(responses[0]!.errorDetail?.message).toEqual(
    refused === undefined ? undefined : expect.stringMatching(refused),
  );
  const receivedBundles = proxy.receivedEvents.filter(({ type }) => type === 'trust-bundle.received');
  expect(receivedBundles.flatMap(({ roots }) => roots as string[]).map((pem) => pem.trim())).toEqual(
    reported.map((pem) => pem.trim()),
  );
});

test.each([
  { over: 'plaintext', isSecure: false },
  { over: 'TLS', isSecure: true },
])(
  'verifies a control plane by roots received over $over only if their sender was verified itself',
  async ({ isSecure }) => {
    const authority = createAuthority();
    const { privateKey, certificate } = authority.issue(['localhost']);
    const { address, answers: responses } = await rootsFrom(
      [authority.certificate, root],
      isSecure ? { key: privateKey, cert: certificate } : undefined,
    );
    const receivedRoots = new DistributedRoots();
    const tls = { roots: authority.certificate, serverName: 'localhost' };
    const credentials = { headers: {}, description: 'nothing', ...(isSecure && { tls }) };
    const proxy = await start(address, { trustBundles: true, bundles: 'served', receivedRoots, credentials });
    countReceived(await envoy(proxy.socket)).stream.write(frameOf(message(listenerType)));
    await eventually('they are answered', () => responses.length === 1);
    expect(parseCertificates(Buffer.from(receivedRoots.addTo(authority.certificate)))).toHaveLength(isSecure ? 2 : 1);
  },
);
