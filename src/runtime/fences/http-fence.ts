/**
 * Protects an HTTP server: any input of a client gets a response or closes the connection, and never ends the program.
 *
 * A client that sends slowly, is silent, or does not read is disconnected at a limit.
 *
 * Every string written to a response is escaped (`visible-text.ts`), because users read pages with curl in a terminal. Bytes are not. A handler that
 * sets `content-length` must escape first.
 */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../errors.ts';
import { visibleText } from '../visible-text.ts';
import { ConnectionBounds, type ConnectionBoundsOptions } from './connection-bounds.ts';
import { runAsOwner } from './fault-owner.ts';
import { openFilesLimit } from './open-files.ts';
import { repeatedHeader } from './repeated-header.ts';

export interface HttpLimits extends ConnectionBoundsOptions {
  /** Timeout for the first line and headers of a request, from its first byte or the start of the connection. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** Timeout between two requests of a connection. */
  readonly idleMs: number;
  /** Maximum time that a client may leave a response unread. */
  readonly unreadMs: number;
  readonly maxHeaderBytes: number;
  /** Maximum requests of one connection in processing; more unread requests close it. */
  readonly maxPipelined: number;
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
  /** Reduced if the limit of open files is low. */
  maxConnections: 1_024,
};

export interface HttpFenceOptions {
  readonly limits?: Partial<HttpLimits>;
  /** Receives errors that a handler did not catch, which are bugs. */
  readonly failed?: (error: unknown, request: { readonly method: string; readonly target: string }) => void;
}

/** @param url of the request's target, on the host `localhost` unless the target names another. Its path is not decoded. */
export type HttpServe = (request: IncomingMessage, response: ServerResponse, url: URL) => void | Promise<void>;

/** Creates a server that is not listening yet. */
export function createFencedServer(serve: HttpServe, options: HttpFenceOptions = {}): Server {
  const limits = httpLimitsOf(options);
  return fenceServer(createServer(serverOptionsOf(limits)), serve, limits, options);
}

export function httpLimitsOf({ limits }: HttpFenceOptions): HttpLimits {
  return { ...defaultHttpLimits, maxConnections: connectionsOfPort(openFilesLimit()), ...limits };
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
 * @param server not listening yet
 * @param connectionOf returns the accepted connection of a request's socket; with TLS these are different sockets
 */
export function fenceServer<S extends Server>(
  server: S,
  serve: HttpServe,
  limits: HttpLimits,
  options: HttpFenceOptions,
  connectionOf: (socket: Socket) => Socket = (socket) => socket,
): S {
  const bounds = new ConnectionBounds<Socket>({ ...limits, isIdleReplaced: true });
  const requestCounts = new WeakMap<Socket, number>();
  server.on('connection', (socket: Socket) => {
    // Without a listener, an error of a socket that was detached from the parser (CONNECT) would end the program.
    socket.on('error', () => socket.destroy());
    bounds.admit(socket, socket.remoteAddress);
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    socket.write('HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    // After `end()` the connection could stay half open forever.
    socket.destroySoon();
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    escapeStrings(response);
    const { socket } = request;
    const requestCount = (requestCounts.get(socket) ?? 0) + 1;
    if (requestCount > limits.maxPipelined) {
      socket.destroy();
      return;
    }
    requestCounts.set(socket, requestCount);
    const connection = connectionOf(socket);
    bounds.busy(connection);
    response.on('close', () => {
      const remainingRequests = (requestCounts.get(socket) ?? 1) - 1;
      requestCounts.set(socket, remainingRequests);
      if (remainingRequests === 0) bounds.idle(connection);
    });
    closeIfUnread(response, limits.unreadMs);
    fence(request, response, serve, options);
  });
  return server;
}

/**
 * Modifies the object instead of passing a class to `createServer`, because the bundle loads `node:http` on first use.
 */
function escapeStrings(response: ServerResponse): void {
  type Send = (chunk?: unknown, ...rest: unknown[]) => never;
  const write = response.write.bind(response) as Send;
  const end = response.end.bind(response) as Send;
  response.write = (chunk: unknown, ...args: unknown[]) => write(visibleChunk(chunk), ...args);
  response.end = (chunk?: unknown, ...args: unknown[]) => end(visibleChunk(chunk), ...args);
}

function visibleChunk<T>(chunk: T): T | string {
  return typeof chunk === 'string' ? visibleText(chunk) : chunk;
}

/** An HTTP port uses at most an eighth of the file descriptors, because a program without free descriptors cannot serve any client. */
export function connectionsOfPort(openFiles = Number.POSITIVE_INFINITY): number {
  return Math.min(defaultHttpLimits.maxConnections, Math.max(minConnections, Math.floor(openFiles / 8)));
}

const minConnections = 4;

export function urlOf(target: string): URL | undefined {
  // `//x/y` alone would parse as the host x, but every target with a leading slash is a path.
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
  // An aborted connection is no failure.
  request.on('error', () => {});
  response.on('error', () => {});
  const fail = (error: unknown): void => {
    failed?.(error, { method, target });
    respondWithFailure(response, error);
  };
  const url = urlOf(target);
  if (url === undefined) {
    respondWithText(response, 400, 'invalid request target\n');
    return;
  }
  const repeatedName = repeatedHeader(request.rawHeaders);
  if (repeatedName !== undefined) {
    respondWithText(response, 400, `header ${repeatedName} must not be repeated\n`);
    return;
  }
  const owner = { name: `${method} ${url.pathname}`, fail: (error: unknown) => respondWithFailure(response, error) };
  runAsOwner(owner, () => {
    try {
      void Promise.resolve(serve(request, response, url)).catch(fail);
    } catch (error) {
      fail(error);
    }
  });
}

/** A partial response cannot be replaced, so its connection is closed. */
function respondWithFailure(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else respondWithText(response, 500, `${messageOf(error)}\n`);
}

function respondWithText(response: ServerResponse, status: number, text: string): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  response.end(text);
}

/** A client that does not read would keep the response in memory. */
function closeIfUnread(response: ServerResponse, unreadMs: number): void {
  response.setTimeout(unreadMs, () => {
    if (response.writableEnded || response.writableLength > 0) response.destroy();
  });
}
