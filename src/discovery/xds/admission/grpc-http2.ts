/**
 * Observes the HTTP/2 servers of a gRPC server from the start of a session: grpc-js exposes a session only with its first valid call. The HTTP/2
 * servers and their options are private fields of grpc-js 1.14, found by their structure.
 */
import { X509Certificate } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { constants } from 'node:http2';
import { type Server, type ServerCredentials, status } from '@grpc/grpc-js';
import { appendCode } from '../../../runtime/errors.ts';
import { repeatedHeader } from '../../../runtime/fences/repeated-header.ts';
import { visibleLine } from '../../../runtime/visible-text.ts';
import type { ClientConnection, SecurePortCredentials } from '../secure-port/server-certificates.ts';
import { isEnded, type PacedSession } from './session-pace.ts';

export interface ConnectionInjector {
  injectConnection(socket: import('node:net').Socket): void;
}

export interface Http2Watch {
  /** @param peer `host:port` */
  onSessionStarted(session: PacedSession, peer: string): void;
  onStreamStarted(peer: string): void;
}

/** Limits beyond which nghttp2 closes a session. */
export interface SessionLimits {
  /** Initial maximum of a session. */
  readonly maxConcurrentStreams: number;
  readonly resetBurst: number;
  readonly resetsPerSecond: number;
}

/** Limit of invalid frames, and of rejected streams, per session. */
const maxInvalidFrames = 100;
/** Maximum time until the client closes a rejected call. */
const refusedLingerMs = 5_000;
const maxHeaderBytes = 16 * 1024;

export function createInjector(
  server: Server,
  credentials: ServerCredentials,
  limits: SessionLimits,
  watch: Http2Watch,
): ConnectionInjector {
  const options = field(server, 'commonServerOptions');
  if (isRecord(options)) {
    options.streamResetBurst = limits.resetBurst;
    options.streamResetRate = limits.resetsPerSecond;
    options.maxSessionInvalidFrames = maxInvalidFrames;
    options.maxSessionRejectedStreams = maxInvalidFrames;
    options.settings = { maxConcurrentStreams: limits.maxConcurrentStreams, maxHeaderListSize: maxHeaderBytes };
  }
  const injector = server.createConnectionInjector(credentials);
  const newestServer = http2ServersOf(server).at(-1);
  if (newestServer !== undefined) {
    if (credentials._isSecure()) rejectInvalidCertificates(newestServer, credentials as CertificateCheck);
    watchServer(newestServer, watch);
  }
  return injector;
}

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

/** A connection without a client certificate is accepted. */
function rejectInvalidCertificates(http2: EventEmitter, check: CertificateCheck): void {
  const handlers = http2.listeners('secureConnection') as ((socket: SecureSocket) => void)[];
  http2.removeAllListeners('secureConnection');
  http2.on('secureConnection', (socket: SecureSocket) => {
    const chain = chainOf(socket);
    if (!isValid(socket, chain, check)) {
      socket.destroy();
      return;
    }
    const onSession = (session: ClientConnection['session']): void => check.addClient?.({ socket, session, chain });
    // Sessions start synchronously, so this one belongs to this connection.
    if (chain.length > 0) http2.on('session', onSession);
    for (const handler of handlers) handler.call(http2, socket);
    http2.off('session', onSession);
  });
}

function isValid(socket: SecureSocket, chain: readonly Uint8Array[], check: CertificateCheck): boolean {
  if (chain.length === 0) return true;
  // Node does not check validity dates again for a resumed TLS session.
  if (socket.isSessionReused?.() === true && hasExpired(chain[0]!)) return false;
  if (socket.authorized !== true && check.acceptsOtherClient?.(chain) !== true) return false;
  // grpc-js checks this property to reject calls.
  socket.authorized = true;
  return true;
}

function hasExpired(certificate: Uint8Array): boolean {
  return Date.now() > new X509Certificate(certificate).validToDate.getTime();
}

/** DER, leaf first. Some versions of Node omit intermediates that the client sends (nodejs/node#65579). */
export function chainOf(socket: Pick<SecureSocket, 'getPeerCertificate'>): Uint8Array[] {
  const chain: Uint8Array[] = [];
  const visitedCertificates = new Set<unknown>();
  let certificate: unknown = socket.getPeerCertificate?.(true);
  // A self-signed root is its own issuer.
  while (isRecord(certificate) && certificate.raw instanceof Uint8Array && !visitedCertificates.has(certificate)) {
    visitedCertificates.add(certificate);
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}

/** If the members are undefined, exactly the clients that TLS accepts are accepted. */
type CertificateCheck = Partial<Pick<SecurePortCredentials, 'acceptsOtherClient' | 'addClient'>>;

function watchServer(http2: EventEmitter, { onSessionStarted, onStreamStarted }: Http2Watch): void {
  const peers = new WeakMap<object, string>();
  http2.prependListener('session', (session: PacedSession & { socket?: unknown }) => {
    const peer = peerOf(session.socket);
    peers.set(session, peer);
    onSessionStarted(session, peer);
  });
  const handlers = http2.listeners('stream') as ((...stream: unknown[]) => void)[];
  http2.removeAllListeners('stream');
  http2.on('stream', (stream: Stream, ...eventArguments: unknown[]) => {
    const { session } = stream;
    if (session !== undefined) onStreamStarted(peers.get(session) ?? '');
    const [, , rawHeaders] = eventArguments;
    const repeatedName = Array.isArray(rawHeaders) ? repeatedHeader(rawHeaders) : undefined;
    // The stream was reset or exceeds a limit.
    if (session === undefined || isEnded(session) || stream.destroyed || stream.closed) stream.on('error', () => {});
    else if (repeatedName !== undefined)
      rejectCall(
        stream,
        appendCode(`header ${repeatedName} must be sent once, got it several times`, 'CLIENT_UNAUTHENTICATED'),
      );
    else for (const handle of handlers) handle.call(http2, stream, ...eventArguments);
  });
}

/** Discards request data until the client has read the status. */
function rejectCall(stream: Stream, reason: string): void {
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

function field(target: unknown, name: string): unknown {
  return typeof target === 'object' && target !== null ? (target as Record<string, unknown>)[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isEmitter(value: unknown): value is EventEmitter {
  return ['prependListener', 'listeners', 'removeAllListeners', 'on'].every(
    (method) => typeof field(value, method) === 'function',
  );
}
