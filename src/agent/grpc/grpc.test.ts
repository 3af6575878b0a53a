import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2, createSecureServer } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { frame } from '../../../test/harness/raw-http2.ts';
import { defaultGrpcLimits, GrpcConnection, unary } from '../../runtime/grpc/grpc-client.ts';
import { FrameReader } from '../../runtime/grpc/grpc-frames.ts';
import { Ownership } from '../../runtime/ownership.ts';
import { type GrpcMethod, GrpcSocketServer } from './grpc-server.ts';

const echo: GrpcMethod = (call) => {
  const reader = new FrameReader({ wholeBytes: 1_000 });
  call.stream.on('data', (chunk: Buffer) => reader.push(chunk, ({ bytes }) => void call.write(bytes)));
  call.stream.on('end', () => call.end('OK'));
};
const methods = new Map<string, GrpcMethod>([
  ['/a.A/Echo', echo],
  ['/a.A/Refuse', (call) => call.end('PERMISSION_DENIED', 'not für you')],
  ['/a.A/Break', (call) => call.stream.destroy()],
  ['/a.A/Silent', () => {}],
]);
const limits = { limitMs: 2_000, maxBytes: 1_000 };

let directory: string;
const cleanups: (() => unknown)[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'grpc-'));
});

afterEach(() => {
  for (const end of cleanups.splice(0)) end();
  rmSync(directory, { recursive: true, force: true });
});

const socketPath = (): string => join(directory, 'XDS');

async function serve(options: Partial<Parameters<typeof GrpcSocketServer.listen>[1]> = {}): Promise<GrpcSocketServer> {
  const server = await GrpcSocketServer.listen(socketPath(), { methods, ...options });
  cleanups.push(() => server.close());
  return server;
}

async function openConnection(dial: Partial<typeof defaultGrpcLimits> = {}): Promise<GrpcConnection> {
  const connection = await GrpcConnection.open({ address: { path: socketPath() } }, { ...defaultGrpcLimits, ...dial });
  cleanups.push(() => connection.close());
  return connection;
}

const call = (connection: GrpcConnection, method: string, message = Buffer.from('hi')): Promise<Buffer> =>
  unary(connection, `/a.A/${method}`, {}, message, limits);

test('exchanges messages over a socket that only the current user can open', async () => {
  await serve();
  expect(statSync(socketPath()).mode & 0o777).toBe(0o600);
  const connection = await openConnection();
  expect(String(await call(connection, 'Echo'))).toBe('hi');
  expect(await call(connection, 'Echo', Buffer.alloc(0))).toEqual(Buffer.alloc(0));
});

test('returns code and message of a failed call', async () => {
  await serve();
  const connection = await openConnection();
  await expect(call(connection, 'Refuse')).rejects.toThrow('PERMISSION_DENIED: not für you');
  await expect(call(connection, 'Nothing')).rejects.toThrow('UNIMPLEMENTED: unknown method /a.A/Nothing');
  await expect(call(connection, 'Break')).rejects.toThrow('UNAVAILABLE');
  await expect(call(connection, 'Echo', Buffer.alloc(1_001))).rejects.toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    details: expect.stringContaining('1001 bytes'),
  });
  await expect(unary(connection, '/a.A/Silent', {}, Buffer.alloc(0), { ...limits, limitMs: 50 })).rejects.toMatchObject(
    { code: 'DEADLINE_EXCEEDED', details: 'no response within 50 ms' },
  );
  const stop = new AbortController();
  const stoppedCall = unary(connection, '/a.A/Silent', {}, Buffer.alloc(0), { ...limits, stopped: stop.signal });
  stop.abort();
  await expect(stoppedCall).rejects.toThrow('CANCELLED');
  // The other connection is still open.
  expect(String(await call(connection, 'Echo'))).toBe('hi');
});

test('ends the calls to a server that stops', async () => {
  const server = await serve();
  const connection = await openConnection();
  const silentCall = call(connection, 'Silent').catch(String);
  await call(connection, 'Echo');
  server.close();
  expect(await silentCall).toContain('UNAVAILABLE');
  expect(connection.closeError?.code).toBe('UNAVAILABLE');
});

test('replaces a stale socket, but not a socket in use or another kind of file', async () => {
  const server = createServer();
  server.listen(socketPath());
  await once(server, 'listening');
  await expect(serve()).rejects.toThrow(codedError('PORT_IN_USE', { path: socketPath() }));
  server.close();
  // Simulates a killed process.
  await leaveSocketBehind(socketPath());
  await serve();
  await openConnection();
  const file = join(directory, 'file');
  writeFileSync(file, '');
  await expect(GrpcSocketServer.listen(file, { methods })).rejects.toThrow(
    codedError('LISTEN_FAILED', { path: file, expected: 'a socket' }),
  );
  const longPath = `/tmp/${'a'.repeat(110)}`;
  await expect(GrpcSocketServer.listen(longPath, { methods })).rejects.toThrow(
    codedError('LISTEN_FAILED', { path: longPath, expected: 'at most 107 bytes' }),
  );
});

/** A socket file with another link outlives its listener. */
async function leaveSocketBehind(path: string): Promise<void> {
  const server = createServer();
  server.listen(`${path}.1`);
  await once(server, 'listening');
  linkSync(`${path}.1`, path);
  server.close();
  await once(server, 'close');
}

test('limits connections and calls per connection, while other clients are served', async () => {
  await serve({ limits: { connections: 2, streams: 3 } });
  const one = await openConnection();
  await openConnection();
  await expect(openConnection()).rejects.toThrow('UNAVAILABLE');
  const silentCalls = [1, 2, 3].map(() => call(one, 'Silent').catch(String));
  await expect(call(one, 'Echo')).rejects.toThrow();
  expect(await Promise.all(silentCalls)).toEqual(silentCalls.map(() => expect.stringContaining('DEADLINE_EXCEEDED')));
});

test('responds with an error to bytes that are not HTTP/2 and calls that are not gRPC, or closes the connection', async () => {
  await serve();
  const socket = connect(socketPath());
  socket.write('GET / HTTP/1.1\r\n\r\n');
  socket.resume();
  await once(socket, 'close');
  const session = connectHttp2('http://localhost', { createConnection: () => connect(socketPath()) });
  cleanups.push(() => session.destroy());
  const request = session.request({ ':path': '/a.A/Echo', ':method': 'POST' });
  const [headers] = (await once(request, 'response')) as [{ ':status': number }];
  expect(headers[':status']).toBe(415);
  expect(String(await call(await openConnection(), 'Echo'))).toBe('hi');
});

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

const shortLimits = { ...defaultGrpcLimits, dialMs: 300, keepAliveMs: 50, keepAliveTimeoutMs: 50 };
const to = (port: number) => ({ address: { host: '127.0.0.1', port } });

test.each([
  ['sends nothing', () => {}, 'no connection within 300 ms'],
  ['closes the connection immediately', (socket: Socket) => socket.end(), 'closed'],
  ['resets', (socket: Socket) => socket.resetAndDestroy(), 'ECONNRESET'],
  [
    'responds with HTTP/1.1',
    (socket: Socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    /Protocol error|closed/,
  ],
])('disconnects from a server that %s', async (_, onSocket, reason) => {
  const sockets: Socket[] = [];
  const port = await listening(
    createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      onSocket(socket);
    }),
  );
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  await expect(GrpcConnection.open(to(port), shortLimits)).rejects.toThrow(reason);
});

test('detects a server that vanishes without closing its connection', async () => {
  const sockets: Socket[] = [];
  // Sends its settings and then nothing, like a host that was switched off.
  const port = await listening(
    createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      socket.resume().write(frame('settings', 0, 0));
    }),
  );
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  const connection = await GrpcConnection.open(to(port), shortLimits);
  await expect(call(connection, 'Silent')).rejects.toThrow('UNAVAILABLE: no HTTP/2 ping response within 50 ms');
});

test("verifies the server's name and root", async () => {
  const authority = createAuthority();
  const { certificate, privateKey } = authority.issue(['istiod.istio-system.svc', 'spiffe://cluster.local/ns/a/sa/b']);
  const server = createSecureServer({ cert: certificate, key: privateKey, ALPNProtocols: ['h2'] });
  const port = await listening(server as unknown as Server);
  const tls = { roots: authority.certificate, serverName: 'istiod.istio-system.svc' };
  const connection = await GrpcConnection.open({ ...to(port), tls });
  connection.close();
  await expect(GrpcConnection.open({ ...to(port), tls: { ...tls, serverName: 'other' } })).rejects.toThrow(/other/);
  await expect(GrpcConnection.open({ ...to(port), tls: { ...tls, serverName: '127.0.0.2' } })).rejects.toThrow(
    /127\.0\.0\.2/,
  );
  await expect(GrpcConnection.open({ ...to(port), tls: { ...tls, serverName: 'spiffe://a/b' } })).rejects.toThrow(
    /spiffe:\/\/a\/b/,
  );
  await expect(
    GrpcConnection.open({ ...to(port), tls: { ...tls, roots: createAuthority().certificate } }),
  ).rejects.toThrow(/certificate|signature/);
});

test('limits the rate of new calls per connection without delaying others', async () => {
  await serve();
  const [busyConnection, other] = [await openConnection(), await openConnection()];
  const results = await Promise.allSettled(Array.from({ length: 16 }, () => call(busyConnection, 'Echo')));
  expect(results.every(({ status }) => status === 'fulfilled')).toBe(true);
  let refusal: unknown;
  for (let i = 0; i < 300 && refusal === undefined; i++)
    await call(busyConnection, 'Echo').catch((error) => (refusal = error));
  expect(refusal).toMatchObject({ message: 'RESOURCE_EXHAUSTED: too many calls per second' });
  await call(other, 'Echo');
});

test('limits the rate of new calls of a client that opens a connection per call', async () => {
  await serve({ limits: { totalCallRate: { burst: 20, perSecond: 0 } } });
  const results: string[] = [];
  for (let i = 0; i < 21; i++) {
    const connection = await openConnection();
    results.push(
      await call(connection, 'Echo').then(
        () => 'OK',
        (error: Error) => error.message,
      ),
    );
    connection.close();
  }
  expect(results.filter((result) => result === 'OK')).toHaveLength(20);
  expect(results.at(-1)).toBe('RESOURCE_EXHAUSTED: too many calls per second');
});

/** Two programs at one path, simulated in one process with two PIDs. */
async function serveOwned(ownership: Ownership, replyText: string, pid: number): Promise<GrpcSocketServer> {
  const pidProperty = Object.getOwnPropertyDescriptor(process, 'pid')!;
  Object.defineProperty(process, 'pid', { ...pidProperty, value: pid });
  try {
    return await serve({ ownership, methods: new Map([['/a.A/Who', (call) => call.end('NOT_FOUND', replyText)]]) });
  } finally {
    Object.defineProperty(process, 'pid', pidProperty);
  }
}

const servingProgram = async (): Promise<unknown> =>
  call(await openConnection(), 'Who').catch(({ details }) => details);

test('replaces the socket of another process when it becomes the owner, and closes only its own socket', async () => {
  const [olderOwnership, newer] = [new Ownership(true), new Ownership(false)];
  const first = await serveOwned(olderOwnership, 'older', process.pid);
  const secondServer = await serveOwned(newer, 'newer', 1);
  expect(await servingProgram()).toBe('older');
  olderOwnership.relinquish();
  await newer.acquireAll();
  expect(await servingProgram()).toBe('newer');
  first.close();
  expect(await servingProgram()).toBe('newer');
  expect(statSync(socketPath()).mode & 0o777).toBe(0o600);
  secondServer.close();
});

test('takes back the path of a socket from an exited process at once, and acquiring it again changes nothing', async () => {
  const [olderOwnership, newer] = [new Ownership(true), new Ownership(false)];
  const first = await serveOwned(olderOwnership, 'older', process.pid);
  const secondServer = await serveOwned(newer, 'newer', 1);
  olderOwnership.relinquish();
  await newer.acquireAll();
  newer.relinquish();
  secondServer.close();
  await olderOwnership.acquireAll();
  await olderOwnership.acquireAll();
  expect(await servingProgram()).toBe('older');
  expect(readdirSync(directory).sort()).toEqual(['XDS', `XDS.${process.pid}`]);
  first.close();
  expect(readdirSync(directory)).toEqual([]);
});

test('removes names of killed processes, but not of running ones', async () => {
  const stale = createServer();
  stale.listen(join(directory, 'left'));
  await once(stale, 'listening');
  for (const name of ['XDS', 'XDS.4', 'XDS.5.next']) linkSync(join(directory, 'left'), join(directory, name));
  stale.close();
  await once(stale, 'close');
  const liveServer = createServer((socket) => socket.end());
  liveServer.listen(join(directory, 'XDS.7'));
  await once(liveServer, 'listening');
  cleanups.push(() => liveServer.close());
  writeFileSync(join(directory, 'XDS.txt'), '');
  await serveOwned(new Ownership(true), 'next', process.pid);
  expect(readdirSync(directory).sort()).toEqual(['XDS', 'XDS.7', `XDS.${process.pid}`, 'XDS.txt'].sort());
  expect(await servingProgram()).toBe('next');
});

test('does not replace a socket that another process serves', async () => {
  await serveOwned(new Ownership(true), 'first', process.pid);
  await expect(serveOwned(new Ownership(true), 'second', 1)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
  expect(await servingProgram()).toBe('first');
});

test('does not replace a socket whose owner is too busy to accept connections', async () => {
  const path = join(directory, 'busy');
  const program = `require('node:net').createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log('listens'))`;
  const owner = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  cleanups.push(() => owner.kill('SIGKILL'));
  await once(owner.stdout, 'data');
  owner.kill('SIGSTOP');
  const waitingSockets: Socket[] = [];
  cleanups.push(() => {
    for (const socket of waitingSockets) socket.destroy();
  });
  const isFull = async (): Promise<boolean> => {
    const socket = connect(path);
    waitingSockets.push(socket);
    return once(socket, 'connect').then(
      () => false,
      () => true,
    );
  };
  while (!(await isFull())) expect(waitingSockets.length).toBeLessThan(10);
  await expect(GrpcSocketServer.listen(path, { methods })).rejects.toMatchObject({ code: 'PORT_IN_USE' });
  expect(existsSync(path)).toBe(true);
});
