/** A server with Node's HTTP/2 that echoes messages as gRPC messages. */
import { once } from 'node:events';
import { createSecureServer, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../certs/authority.ts';
import { eventually } from '../harness/eventually.ts';
import { type ClientTls, GrpcStream } from './http2-stream.ts';

async function serve(onStream: (stream: ServerHttp2Stream) => void): Promise<number> {
  const server = createServer({ settings: { initialWindowSize: 1_000 } });
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    onStream(stream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function openStream(port: number, tls?: ClientTls): { stream: GrpcStream; messages: Buffer[]; ends: string[] } {
  const messages: Buffer[] = [];
  const ends: string[] = [];
  const stream = new GrpcStream({
    port,
    ...(tls !== undefined && { tls }),
    path: '/a.Service/Method',
    onMessage: (message) => messages.push(message),
    onEnd: (reason) => ends.push(reason),
  });
  onTestFinished(() => stream.close());
  return { stream, messages, ends };
}

const echo = (stream: ServerHttp2Stream): void => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
  stream.pipe(stream);
};

test('messages larger than windows and frames are transferred in both directions', async () => {
  const { stream, messages } = openStream(await serve(echo));
  const sentMessages = [Buffer.from('small'), Buffer.alloc(300_000, 'large'), Buffer.alloc(0), Buffer.from('last')];
  for (const message of sentMessages) stream.send(message);
  await eventually('all came back', () => messages.length === sentMessages.length);
  expect(messages.map((message, i) => message.equals(sentMessages[i]!))).toEqual([true, true, true, true]);
  expect(stream.messageBytes).toBe(sentMessages.reduce((sum, { length }) => sum + length + 5, 0));
});

test('a client that reads continuously receives more than its window', async () => {
  const message = Buffer.concat([Buffer.from([0, 0, 0x10, 0, 0]), Buffer.alloc(1024 * 1024, 'x')]);
  const port = await serve((stream) => {
    stream.respond({ ':status': 200 });
    for (let i = 0; i < 64; i++) stream.write(message);
  });
  const { messages } = openStream(port);
  await eventually('64 MiB came', () => messages.length === 64);
});

test('messages are transferred in both directions with TLS, and the server receives the client certificate', async () => {
  const authority = createAuthority();
  const [server, client] = [authority.issue(['server.local']), authority.issue(['client.local'])];
  const http2 = createSecureServer({
    ...{ cert: server.certificate, key: server.privateKey, ca: authority.certificate, requestCert: true },
  });
  const serials: (string | undefined)[] = [];
  http2.on('secureConnection', (socket: TLSSocket) => serials.push(socket.getPeerCertificate().serialNumber));
  http2.on('stream', (stream) => echo(stream.on('error', () => {})));
  http2.listen(0, '127.0.0.1');
  await once(http2, 'listening');
  onTestFinished(() => void http2.close());
  const { stream, messages } = openStream((http2.address() as AddressInfo).port, {
    ca: authority.certificate,
    serverName: 'server.local',
    certificate: { chain: client.certificate, key: client.privateKey },
  });
  stream.send(Buffer.alloc(300_000, 'large'));
  await eventually('it came back', () => messages.length === 1);
  expect(messages[0]!.equals(Buffer.alloc(300_000, 'large'))).toBe(true);
  expect(serials).toEqual([client.serialNumber]);
});

test('a paused stream receives nothing until it resumes', async () => {
  const { stream, messages } = openStream(await serve(echo));
  stream.send(Buffer.from('one'));
  await eventually('the first came', () => messages.length === 1);
  stream.pause();
  stream.send(Buffer.from('two'));
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(messages).toHaveLength(1);
  stream.resume();
  await eventually('the second came', () => messages.length === 2);
});

test('the end of a stream by the server is reported once with its reason', async () => {
  const { ends } = openStream(await serve((stream) => stream.close(8)));
  await eventually('it ended', () => ends.length > 0);
  expect(ends).toEqual(['the server reset the stream: HTTP/2 error 8']);
});

test('a refused connection is reported', async () => {
  const { ends } = openStream(1);
  await eventually('it ended', () => ends.length > 0);
  expect(ends[0]).toContain('ECONNREFUSED');
});
