/** Clients of the mesh; each request opens a connection. */
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { isSystemError } from '../../../../src/runtime/errors.ts';
import type { ReceivedRequest } from './backends.ts';

/** TLS of a client; without `ca` any certificate is accepted. */
export interface ClientTls extends Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'ALPNProtocols' | 'maxVersion'> {
  /** If absent, the client sends no SNI. */
  readonly servername?: string;
}

export interface RequestTo {
  readonly port: number;
  /** Default 127.0.0.1. */
  readonly address?: string;
  /** The `Host` header (default `address:port`). */
  readonly host?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly tls?: ClientTls;
  /** HTTP/2: with prior knowledge, or by ALPN with TLS. */
  readonly http2?: boolean;
  /** Whether the request goes to an inbound listener; used only by explain. */
  readonly inbound?: boolean;
  /** Default 30,000. */
  readonly timeoutMs?: number;
  /** How long to retry a port that refuses connections; default 10,000. */
  readonly retryForMs?: number;
}

export interface BackendResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The request as received by the backend. Throws if the response is not from a backend. */
  readonly seen: ReceivedRequest;
  readonly durationMs: number;
  /** Port of the client, which identifies the connection in Envoy's log. */
  readonly localPort: number;
}

/** @throws the connection's error, such as a reset or a failed handshake */
export async function sendRequest(to: RequestTo): Promise<BackendResponse> {
  const deadline = performance.now() + (to.retryForMs ?? 10_000);
  for (;;) {
    try {
      return await (to.http2 ? sendHttp2(to) : sendHttp1(to));
    } catch (error) {
      if (!isSystemError(error, 'ECONNREFUSED') || performance.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

async function sendHttp1(to: RequestTo): Promise<BackendResponse> {
  const { port, address = '127.0.0.1', host, path = '/', method = 'GET', headers = {}, tls, timeoutMs = 30_000 } = to;
  const begunAt = performance.now();
  const options = { host: address, port, path, method, agent: false, headers: { ...(host && { host }), ...headers } };
  let localPort = 0;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const clientRequest = tls ? httpsRequest({ ...options, ...asTls(tls) }) : httpRequest(options);
    clientRequest.setTimeout(timeoutMs, () => clientRequest.destroy(new Error(`no answer in ${timeoutMs} ms`)));
    clientRequest.on('socket', (socket: Socket) => socket.on('connect', () => (localPort = socket.localPort ?? 0)));
    clientRequest.on('error', reject);
    clientRequest.on('response', resolve);
    clientRequest.end(to.body);
  });
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += chunk as string;
  return responseOf({ status: response.statusCode ?? 0, headers: response.headers, body, begunAt, localPort });
}

async function sendHttp2(to: RequestTo): Promise<BackendResponse> {
  const { port, address = '127.0.0.1', host, path = '/', method = 'GET', headers = {}, tls, timeoutMs = 30_000 } = to;
  const begunAt = performance.now();
  const scheme = tls ? 'https' : 'http';
  const session = connectHttp2(`${scheme}://${address}:${port}`, tls ? asTls({ ...tls, ALPNProtocols: ['h2'] }) : {});
  try {
    return await new Promise<BackendResponse>((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request({
        [constants.HTTP2_HEADER_AUTHORITY]: host ?? `${address}:${port}`,
        [constants.HTTP2_HEADER_METHOD]: method,
        [constants.HTTP2_HEADER_PATH]: path,
        ...headers,
      });
      let receivedHeaders: IncomingHttpHeaders = {};
      let body = '';
      stream.setTimeout(timeoutMs, () => reject(new Error(`no answer in ${timeoutMs} ms`)));
      stream.setEncoding('utf8');
      stream.on('error', reject);
      stream.on('response', (responseHeaders) => (receivedHeaders = responseHeaders as never));
      stream.on('data', (chunk: string) => (body += chunk));
      stream.on('end', () => {
        const status = Number((receivedHeaders as Record<string, unknown>)[':status'] ?? 0);
        resolve(
          responseOf({ status, headers: receivedHeaders, body, begunAt, localPort: session.socket?.localPort ?? 0 }),
        );
      });
      stream.end(to.body);
    });
  } finally {
    session.destroy();
  }
}

function responseOf(
  rawResponse: Omit<BackendResponse, 'seen' | 'durationMs'> & { readonly begunAt: number },
): BackendResponse {
  const { begunAt, ...response } = rawResponse;
  return {
    ...response,
    durationMs: performance.now() - begunAt,
    get seen(): ReceivedRequest {
      if (!response.body.startsWith('{"backend"'))
        throw new Error(`${response.status} of no backend: ${response.body}`);
      return JSON.parse(response.body) as ReceivedRequest;
    },
  };
}

export interface ConnectTo
  extends Pick<RequestTo, 'port' | 'address' | 'tls' | 'inbound' | 'timeoutMs' | 'retryForMs'> {
  /** Data that is sent after connecting. */
  readonly send?: string | Buffer;
  /** Reads until the data matches (default: until the first bytes). */
  readonly until?: RegExp;
}

export interface ReceivedData {
  readonly text: string;
  /** The certificate's subject alternative names and serial number, with TLS. */
  readonly peer?: { readonly subjectaltname: string; readonly serialNumber: string };
  readonly localPort: number;
}

/**
 * Opens one connection.
 * @throws Error if it closes or times out before data (or `until`) was received
 */
export async function openConnection(to: ConnectTo): Promise<ReceivedData> {
  const deadline = performance.now() + (to.retryForMs ?? 10_000);
  for (;;) {
    try {
      return await talk(to);
    } catch (error) {
      if (!isSystemError(error, 'ECONNREFUSED') || performance.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

async function talk({
  port,
  address = '127.0.0.1',
  tls,
  send,
  until = /./s,
  timeoutMs = 30_000,
}: ConnectTo): Promise<ReceivedData> {
  const socket = tls ? connectTls({ host: address, port, ...asTls(tls) }) : connectTcp(port, address);
  let text = '';
  try {
    return await new Promise<ReceivedData>((resolve, reject) => {
      socket.setTimeout(timeoutMs, () => reject(new Error(`heard ${JSON.stringify(text)} in ${timeoutMs} ms`)));
      socket.on('error', reject);
      socket.on('close', () => reject(new Error(`closed after ${JSON.stringify(text)}`)));
      socket.setEncoding('latin1');
      socket.on('data', (chunk: string) => {
        text += chunk;
        if (!until.test(text)) return;
        const peer = 'getPeerCertificate' in socket ? socket.getPeerCertificate() : undefined;
        resolve({ text, localPort: socket.localPort ?? 0, ...(peer && { peer }) } as ReceivedData);
      });
      if (send !== undefined) socket.write(send);
    });
  } finally {
    socket.destroy();
  }
}

function asTls({ ca, ...tls }: ClientTls): ConnectionOptions {
  // Envoy verifies the certificate's name as a client; here the authority is sufficient.
  return {
    ...tls,
    servername: tls.servername ?? '',
    ca,
    rejectUnauthorized: ca !== undefined,
    checkServerIdentity: () => undefined,
  };
}
