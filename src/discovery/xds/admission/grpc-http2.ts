/**
 * The HTTP/2 servers under a gRPC server, watched from the first byte of a session: grpc-js shows a session only with the
 * first call of a method that it knows. Its HTTP/2 servers, and the options that it makes them with, are private fields of
 * grpc-js 1.14, so they are looked for by what they can do; without them connections are served all the same, and bounded
 * by their number alone.
 */
import { X509Certificate } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { constants } from 'node:http2';
import { type Server, type ServerCredentials, status } from '@grpc/grpc-js';
import { withCode } from '../../../runtime/errors.ts';
import { repeatedHeader } from '../../../runtime/fences/repeated-header.ts';
import { visibleLine } from '../../../runtime/visible-text.ts';
import type { ClientConnection, SecurePortCredentials } from '../secure-port/server-certificates.ts';
import { isEnded, type PacedSession } from './session-pace.ts';

/** What is used of grpc-js' connection injector. */
export interface Injector {
  injectConnection(socket: import('node:net').Socket): void;
}

export interface Http2Watch {
  /** Calls with `host:port`. */
  sessionBegan(session: PacedSession, peer: string): void;
  streamBegan(peer: string): void;
}

/** What nghttp2 lets a session do before it ends it. */
export interface SessionLimits {
  /** Streams at the same time, until the session is told another number. */
  readonly maxConcurrentStreams: number;
  /** Streams that the client resets, at once and again each second. */
  readonly resetBurst: number;
  readonly resetsPerSecond: number;
}

/** Frames that break the protocol, and streams beyond the limit, before a session is ended. */
const mostInvalid = 100;
/** Silence of a client, after its call was refused, until the stream is closed. */
const refusedLingerMs = 5_000;
/** Limit of a request's headers. */
const maxHeaderBytes = 16 * 1024;

/** Makes an HTTP/2 server of a gRPC server that connections are handed over to. */
export function createInjector(
  server: Server,
  credentials: ServerCredentials,
  limits: SessionLimits,
  watch: Http2Watch,
): Injector {
  const options = field(server, 'commonServerOptions');
  if (isRecord(options)) {
    options.streamResetBurst = limits.resetBurst;
    options.streamResetRate = limits.resetsPerSecond;
    options.maxSessionInvalidFrames = mostInvalid;
    options.maxSessionRejectedStreams = mostInvalid;
    options.settings = { maxConcurrentStreams: limits.maxConcurrentStreams, maxHeaderListSize: maxHeaderBytes };
  }
  const injector = server.createConnectionInjector(credentials);
  const newest = http2ServersOf(server).at(-1);
  if (newest !== undefined) {
    if (credentials._isSecure()) refuseBadCertificates(newest, credentials as Judge);
    watchServer(newest, watch);
  }
  return injector;
}

/** The HTTP/2 servers of a gRPC server, in the order in which they were made. */
function http2ServersOf(server: Server): EventEmitter[] {
  const servers = field(server, 'http2Servers');
  return servers instanceof Map ? [...servers.keys()].filter(isEmitter) : [];
}

interface Stream {
  readonly session?: PacedSession;
  readonly destroyed: boolean;
  readonly closed: boolean;
  respond(headers: Readonly<Record<string, string | number>>, options: { readonly endStream: true }): void;
  resume(): unknown;
  setTimeout(ms: number, callback: () => void): unknown;
  close(code: number): void;
  on(event: 'error', listener: () => void): unknown;
}

interface SecureSocket {
  authorized?: boolean;
  getPeerCertificate?(detailed?: boolean): object;
  isSessionReused?(): boolean;
  destroy(): void;
}

/**
 * A client may show no certificate; one that shows a certificate which is not good is gone before its first request
 * (spec/discovery.md §7.7).
 */
function refuseBadCertificates(http2: EventEmitter, judge: Judge): void {
  const handlers = http2.listeners('secureConnection') as ((socket: SecureSocket) => void)[];
  http2.removeAllListeners('secureConnection');
  http2.on('secureConnection', (socket: SecureSocket) => {
    const chain = chainOf(socket);
    if (!isGood(socket, chain, judge)) {
      socket.destroy();
      return;
    }
    const began = (session: ClientConnection['session']): void => judge.addClient?.({ socket, session, chain });
    // The session of this connection, if there is one, begins meanwhile.
    if (chain.length > 0) http2.on('session', began);
    for (const handler of handlers) handler.call(http2, socket);
    http2.off('session', began);
  });
}

function isGood(socket: SecureSocket, chain: readonly Uint8Array[], judge: Judge): boolean {
  if (chain.length === 0) return true;
  // A resumed session has the result of the first handshake, whatever the time is.
  if (socket.isSessionReused?.() === true && hasExpired(chain[0]!)) return false;
  if (socket.authorized !== true && judge.acceptsOther?.(chain) !== true) return false;
  // grpc-js tells who a client is of these alone.
  socket.authorized = true;
  return true;
}

function hasExpired(certificate: Uint8Array): boolean {
  return Date.now() > new X509Certificate(certificate).validToDate.getTime();
}

/**
 * DER, the leaf first; empty: the client showed no certificate. Some versions of Node do not say what a client sent beside its leaf
 * (nodejs/node#65579): then a chain that needs it is refused.
 */
export function chainOf(socket: Pick<SecureSocket, 'getPeerCertificate'>): Uint8Array[] {
  const chain: Uint8Array[] = [];
  const seen = new Set<unknown>();
  let at: unknown = socket.getPeerCertificate?.(true);
  // A root is its own issuer.
  while (isRecord(at) && at.raw instanceof Uint8Array && !seen.has(at)) {
    seen.add(at);
    chain.push(at.raw);
    at = at.issuerCertificate;
  }
  return chain;
}

/** Most credentials take whom TLS takes, and nobody else. */
type Judge = Partial<Pick<SecurePortCredentials, 'acceptsOther' | 'addClient'>>;

function watchServer(http2: EventEmitter, { sessionBegan, streamBegan }: Http2Watch): void {
  const peers = new WeakMap<object, string>();
  http2.prependListener('session', (session: PacedSession & { socket?: unknown }) => {
    const peer = peerOf(session.socket);
    peers.set(session, peer);
    sessionBegan(session, peer);
  });
  const handlers = http2.listeners('stream') as ((...stream: unknown[]) => void)[];
  http2.removeAllListeners('stream');
  http2.on('stream', (stream: Stream, ...rest: unknown[]) => {
    const { session } = stream;
    if (session !== undefined) streamBegan(peers.get(session) ?? '');
    const [, , rawHeaders] = rest;
    const repeated = Array.isArray(rawHeaders) ? repeatedHeader(rawHeaders) : undefined;
    // What was reset before it was looked at, or is the next of too many, costs no more than this.
    if (session === undefined || isEnded(session) || stream.destroyed || stream.closed) stream.on('error', () => {});
    else if (repeated !== undefined)
      refuse(stream, withCode(`header ${repeated} must be sent once, got it several times`, 'CLIENT_UNAUTHENTICATED'));
    else for (const handle of handlers) handle.call(http2, stream, ...rest);
  });
}

/** Ends a call before grpc-js sees it. The client may have begun to send: what it sends is dropped until it reads the status. */
function refuse(stream: Stream, reason: string): void {
  stream.on('error', () => {});
  stream.respond(
    {
      ...{ ':status': 200, 'content-type': 'application/grpc' },
      ...{ 'grpc-status': status.UNAUTHENTICATED, 'grpc-message': encodeURIComponent(visibleLine(reason)) },
    },
    { endStream: true },
  );
  stream.resume();
  stream.setTimeout(refusedLingerMs, () => stream.close(constants.NGHTTP2_NO_ERROR));
}

function peerOf(socket: unknown): string {
  return `${field(socket, 'remoteAddress')}:${field(socket, 'remotePort')}`;
}

function field(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? (of as Record<string, unknown>)[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isEmitter(value: unknown): value is EventEmitter {
  return ['prependListener', 'listeners', 'removeAllListeners', 'on'].every(
    (method) => typeof field(value, method) === 'function',
  );
}
