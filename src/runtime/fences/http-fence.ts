/**
 * The fence around an HTTP server: whatever a stranger sends is answered or cut off, and never ends the program.
 *
 * Every HTTP server of the project is made here. A request whose target is no address is answered 400, one whose handler
 * fails (at once, later, or by a promise) 500. A client that sends slowly, says nothing or does not read is let go in
 * time, and connections have a bound by address and in whole.
 *
 * Every string written to a response is escaped (`visible-text.ts`): people read pages with curl in a terminal. Bytes are not.
 * A handler that sets `content-length` escapes first.
 */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../errors.ts';
import { visibleText } from '../visible-text.ts';
import { ConnectionBounds, type ConnectionBoundsOptions } from './connection-bounds.ts';
import { onBehalfOf } from './fault-owner.ts';
import { openFilesLimit } from './open-files.ts';
import { repeatedHeader } from './repeated-header.ts';

export interface HttpLimits extends ConnectionBoundsOptions {
  /** For the first line and the headers of a request, from the first byte or the beginning of the connection. */
  readonly headersMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** Between two requests of a connection. */
  readonly idleMs: number;
  /** As long as a client may leave an answer unread. */
  readonly unreadMs: number;
  readonly maxHeaderBytes: number;
  /** Requests of one connection that are being answered: who sends more before it reads is cut off. */
  readonly maxPipelined: number;
  /** How often the first two are looked after. */
  readonly checkMs: number;
}

export const defaultHttpLimits: HttpLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 90_000,
  unreadMs: 30_000,
  maxHeaderBytes: 16 * 1024,
  maxPipelined: 8,
  checkMs: 1_000,
  maxPerAddress: 256,
  /** And fewer where few files may be open. */
  maxInWhole: 1_024,
};

export interface HttpFenceOptions {
  readonly limits?: Partial<HttpLimits>;
  /** Told of each error that a handler let out: a bug, and never the client's. */
  readonly failed?: (error: unknown, request: { readonly method: string; readonly target: string }) => void;
}

/**
 * @param url of the request's target, on the host `localhost` unless the target names another. Its path is what stands in
 *   the target, but for `.` and `..`: nothing in it is decoded.
 */
export type HttpServe = (request: IncomingMessage, response: ServerResponse, url: URL) => void | Promise<void>;

/** Makes a server that is not listening yet. */
export function createFencedServer(serve: HttpServe, options: HttpFenceOptions = {}): Server {
  const limits = httpLimitsOf(options);
  return fenceServer(createServer(serverOptionsOf(limits)), serve, limits, options);
}

export function httpLimitsOf({ limits }: HttpFenceOptions): HttpLimits {
  return { ...defaultHttpLimits, maxInWhole: connectionsOfPort(openFilesLimit()), ...limits };
}

export function serverOptionsOf(limits: HttpLimits): ServerOptions {
  return {
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    maxHeaderSize: limits.maxHeaderBytes,
    connectionsCheckingInterval: limits.checkMs,
  };
}

/**
 * Puts the fence around a server that is not listening yet.
 *
 * @param connectionOf the accepted connection under the socket of a request: with TLS they differ
 */
export function fenceServer<S extends Server>(
  server: S,
  serve: HttpServe,
  limits: HttpLimits,
  options: HttpFenceOptions,
  connectionOf: (socket: Socket) => Socket = (socket) => socket,
): S {
  const bounds = new ConnectionBounds<Socket>({ ...limits, isIdleReplaced: true });
  const underWay = new WeakMap<Socket, number>();
  server.on('connection', (socket: Socket) => {
    // Without a listener an error of a socket that was taken from the parser (CONNECT) would end the program.
    socket.on('error', () => socket.destroy());
    bounds.admit(socket, socket.remoteAddress);
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    socket.write('HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    // Not end(): the other side could stay half open for ever.
    socket.destroySoon();
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    escapeStrings(response);
    const { socket } = request;
    const pipelined = (underWay.get(socket) ?? 0) + 1;
    if (pipelined > limits.maxPipelined) {
      socket.destroy();
      return;
    }
    underWay.set(socket, pipelined);
    const connection = connectionOf(socket);
    bounds.busy(connection);
    response.on('close', () => {
      const left = (underWay.get(socket) ?? 1) - 1;
      underWay.set(socket, left);
      if (left === 0) bounds.idle(connection);
    });
    letGoWhenUnread(response, limits.unreadMs);
    fence(request, response, serve, options);
  });
  return server;
}

/** In place, not as a class for `createServer`: the bundle loads `node:http` when it is first called. */
function escapeStrings(response: ServerResponse): void {
  // Both have overloads for an encoding and a callback, which are passed on.
  type Send = (chunk?: unknown, ...rest: unknown[]) => never;
  const write = response.write.bind(response) as Send;
  const end = response.end.bind(response) as Send;
  response.write = (chunk: unknown, ...rest: unknown[]) => write(visibleChunk(chunk), ...rest);
  response.end = (chunk?: unknown, ...rest: unknown[]) => end(visibleChunk(chunk), ...rest);
}

function visibleChunk<T>(chunk: T): T | string {
  return typeof chunk === 'string' ? visibleText(chunk) : chunk;
}

/** A port of HTTP takes an eighth of the files that may be open at most: a program that has none left answers nobody. */
export function connectionsOfPort(openFiles = Number.POSITIVE_INFINITY): number {
  return Math.min(defaultHttpLimits.maxInWhole, Math.max(fewestConnections, Math.floor(openFiles / 8)));
}

const fewestConnections = 4;

/** The address that a request asks for; undefined when its target is none. */
export function urlOf(target: string): URL | undefined {
  // Read alone, `//x/y` would be the host x: a path is a path, however it begins.
  const url = target.startsWith('/') ? URL.parse(`http://localhost${target}`) : URL.parse(target);
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}

function fence(
  request: IncomingMessage,
  response: ServerResponse,
  serve: HttpServe,
  { failed }: HttpFenceOptions,
): void {
  const { method = 'GET', url: target = '/' } = request;
  // A connection that breaks is nobody's failure.
  request.on('error', () => {});
  response.on('error', () => {});
  const fail = (error: unknown): void => {
    failed?.(error, { method, target });
    answerFailure(response, error);
  };
  const url = urlOf(target);
  if (url === undefined) {
    answerText(response, 400, 'invalid request target\n');
    return;
  }
  const repeated = repeatedHeader(request.rawHeaders);
  if (repeated !== undefined) {
    answerText(response, 400, `header ${repeated} must not be repeated\n`);
    return;
  }
  const owner = { name: `${method} ${url.pathname}`, fail: (error: unknown) => answerFailure(response, error) };
  onBehalfOf(owner, () => {
    try {
      void Promise.resolve(serve(request, response, url)).catch(fail);
    } catch (error) {
      fail(error);
    }
  });
}

/** Half an answer cannot be taken back: its connection ends. */
function answerFailure(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else answerText(response, 500, `${messageOf(error)}\n`);
}

function answerText(response: ServerResponse, status: number, text: string): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  response.end(text);
}

/** An answer that is there and that nobody reads keeps its memory: its connection is closed. */
function letGoWhenUnread(response: ServerResponse, unreadMs: number): void {
  response.setTimeout(unreadMs, () => {
    if (response.writableEnded || response.writableLength > 0) response.destroy();
  });
}
