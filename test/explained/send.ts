/** Sends the generated connection or request from a given address, and waits for the response or the end of the connection. */
import { connect as connectHttp2, constants } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { HttpQuestion, Question } from '../../src/networking/explain/question.ts';
import type { IssuedCertificate } from '../certs/authority.ts';
import { repeatedHeader } from './unusual-requests.ts';

const responseLimitMs = 3_000;

/** Node's default of 64 KiB is less than the headers that exceed Envoy's limit. */
const maxHeaderBytes = 2 ** 20;

export interface SendResult {
  /** `false` if the connection was refused. */
  readonly isConnected: boolean;
}

export interface ClientOptions {
  readonly certificate?: IssuedCertificate | undefined;
  /** Whether the connection starts with a PROXY header. */
  readonly proxyProtocol: boolean;
}

export async function send(
  { destination, source, tls, http }: Question,
  { certificate, proxyProtocol }: ClientOptions,
): Promise<SendResult> {
  const from = { localAddress: source!.address, localPort: source!.port };
  const raw = connectTcp({ host: destination.address!, port: destination.port, ...from });
  raw.on('error', () => {});
  if (!(await precedesClose(raw, 'connect'))) return { isConnected: false };
  if (proxyProtocol) {
    const to = destination.address!;
    raw.write(`PROXY TCP4 ${source!.address} ${to} ${source!.port} ${destination.port}\r\n`);
  }
  const finish = async (socket: Socket): Promise<void> => {
    if (http?.version === 'HTTP/2') await sendHttp2(socket, http);
    else await exchange(socket, http === undefined ? 'bytes of no protocol\r\n\r\n' : textOfRequest(http));
  };
  try {
    if (tls === undefined) await finish(raw);
    else {
      const socket = connectTls({
        socket: raw,
        servername: tls.sni ?? '',
        ALPNProtocols: [...tls.alpn],
        rejectUnauthorized: false,
        ...(certificate && { cert: certificate.certificate, key: certificate.privateKey }),
      });
      socket.on('error', () => {});
      if (await withTimeout(precedesClose(socket, 'secureConnect'))) await finish(socket);
    }
  } finally {
    raw.destroy();
  }
  return { isConnected: true };
}

/** Whether the event precedes the close of the socket. */
function precedesClose(socket: Socket, event: 'connect' | 'secureConnect'): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once(event, () => resolve(true));
    socket.once('close', () => resolve(false));
  });
}

function withTimeout<Value>(value: Promise<Value>): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, responseLimitMs, undefined);
  });
  return Promise.race([value, limit]).finally(() => clearTimeout(timer));
}

async function exchange(socket: Socket, text: string): Promise<void> {
  const endEvent = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    socket.once('end', () => resolve());
  });
  socket.resume();
  socket.write(text, 'latin1');
  await withTimeout(endEvent);
}

function textOfRequest({ method, path, authority, headers, version }: HttpQuestion): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    name === repeatedHeader ? value.split(',').map((one) => `${name}: ${one}`) : [`${name}: ${value}`],
  );
  const host = authority === undefined ? [] : [`host: ${authority}`];
  return [`${method} ${path} ${version}`, ...host, ...lines, 'connection: close', '', ''].join('\r\n');
}

async function sendHttp2(socket: Socket, { method, path, authority, headers }: HttpQuestion): Promise<void> {
  const session = connectHttp2('http://explained', {
    createConnection: () => socket,
    maxSendHeaderBlockLength: maxHeaderBytes,
  });
  session.on('error', () => {});
  const stream = session.request({
    [constants.HTTP2_HEADER_METHOD]: method,
    [constants.HTTP2_HEADER_AUTHORITY]: authority,
    // CONNECT has neither a path nor a scheme.
    ...(method !== 'CONNECT' && { [constants.HTTP2_HEADER_PATH]: path, [constants.HTTP2_HEADER_SCHEME]: 'http' }),
    ...headers,
    ...(headers[repeatedHeader] !== undefined && { [repeatedHeader]: headers[repeatedHeader].split(',') }),
  });
  stream.on('error', () => {});
  stream.resume();
  const endEvent = new Promise<void>((resolve) => {
    stream.once('close', () => resolve());
    session.once('close', () => resolve());
  });
  await withTimeout(endEvent);
  session.destroy();
}
