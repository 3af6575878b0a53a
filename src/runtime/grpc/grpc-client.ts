/** One HTTP/2 connection, over TCP, TLS or a Unix socket. */
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect as connectTls,
  type PeerCertificate,
  TLSSocket,
} from 'node:tls';
import { messageOf } from '../errors.ts';
import { GrpcError, statusOf } from './call-status.ts';
import { FrameReader, frameHeadBytes, frameOf } from './grpc-frames.ts';
import { type KeyPair, privateKeyPem } from './key-pair.ts';

export interface GrpcTarget {
  /** `localAddress` is the source address of the connection; the system chooses it if absent. */
  readonly address:
    | { readonly host: string; readonly port: number; readonly localAddress?: string }
    | { readonly path: string };
  /** The connection is plaintext if absent. */
  readonly tls?: {
    /** PEM certificates. */
    readonly roots: string;
    /** Required name in the server's certificate: a DNS name, an address or a SPIFFE ID. */
    readonly serverName: string;
    readonly certificate?: KeyPair;
    /** Accepted names in the server's certificate, any of which suffices. Default: `serverName`. */
    readonly alternativeNames?: readonly string[];
    readonly isUnverified?: true;
  };
}

export interface GrpcConnectionLimits {
  /** Timeout of connecting, the TLS handshake and the server's SETTINGS frame together. */
  readonly dialMs: number;
  /** Interval of HTTP/2 pings, and timeout of their responses. */
  readonly keepAliveMs: number;
  readonly keepAliveTimeoutMs: number;
  /** Flow-control window: bytes that the server may send before they are read. */
  readonly windowBytes: number;
}

export const defaultGrpcLimits: GrpcConnectionLimits = {
  dialMs: 5_000,
  keepAliveMs: 30_000,
  keepAliveTimeoutMs: 10_000,
  windowBytes: 1024 * 1024,
};

const maxHeaderBytes = 64 * 1024;

export class GrpcConnection {
  readonly #session: ClientHttp2Session;
  readonly #timers: NodeJS.Timeout[] = [];
  #closeError: GrpcError | undefined;

  private constructor(session: ClientHttp2Session, { keepAliveMs, keepAliveTimeoutMs }: GrpcConnectionLimits) {
    this.#session = session;
    session.on('error', (error) => this.#markClosed(messageOf(error)));
    session.once('close', () => this.#markClosed('connection closed'));
    const ping = (): void => {
      const limit = setTimeout(
        () => this.#markClosed(`no HTTP/2 ping response within ${keepAliveTimeoutMs} ms`),
        keepAliveTimeoutMs,
      );
      this.#timers[1] = limit;
      session.ping(() => clearTimeout(limit));
    };
    this.#timers[0] = setInterval(ping, keepAliveMs);
  }

  /**
   * @throws GrpcError UNAVAILABLE if the server is unreachable, fails verification, or does not speak HTTP/2; CANCELLED
   * if `stopSignal` is aborted
   */
  static async open(
    target: GrpcTarget,
    limits: GrpcConnectionLimits = defaultGrpcLimits,
    stopSignal?: AbortSignal,
  ): Promise<GrpcConnection> {
    const timeoutSignal = AbortSignal.timeout(limits.dialMs);
    const dialing = new AbortController();
    const signal = AbortSignal.any([timeoutSignal, dialing.signal, ...(stopSignal === undefined ? [] : [stopSignal])]);
    let socket: Socket | undefined;
    try {
      signal.throwIfAborted();
      socket = openSocket(target);
      // Only the first error counts.
      socket.on('error', () => {});
      const socketClosePromise = once(socket, 'close', { signal }).then(() => {
        throw new Error('connection closed');
      });
      await Promise.race([
        socketClosePromise,
        once(socket, target.tls === undefined ? 'connect' : 'secureConnect', { signal }),
      ]);
      if (socket instanceof TLSSocket && socket.alpnProtocol !== 'h2')
        throw new Error('server does not support HTTP/2 (ALPN)');
      const session = openSession(target, socket, limits);
      // The first frame proves that the server speaks HTTP/2.
      await Promise.race([socketClosePromise, once(session, 'remoteSettings', { signal })]);
      return new GrpcConnection(session, limits);
    } catch (error) {
      socket?.destroy();
      if (stopSignal?.aborted) throw new GrpcError('CANCELLED', 'canceled by the client');
      const failureReason = timeoutSignal.aborted ? `no connection within ${limits.dialMs} ms` : messageOf(error);
      throw new GrpcError('UNAVAILABLE', failureReason, { cause: error });
    } finally {
      dialing.abort();
    }
  }

  start(method: string, headers: Readonly<Record<string, string>>): ClientHttp2Stream {
    return this.#session.request({
      ':method': 'POST',
      ':path': method,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
  }

  get closeError(): GrpcError | undefined {
    return this.#closeError;
  }

  close(): void {
    this.#markClosed('connection closed by the agent');
  }

  #markClosed(reason: string): void {
    if (this.#closeError !== undefined) return;
    this.#closeError = new GrpcError('UNAVAILABLE', reason);
    clearInterval(this.#timers[0]);
    clearTimeout(this.#timers[1]);
    this.#session.destroy();
  }
}

function openSocket({ address, tls }: GrpcTarget): Socket {
  if (tls === undefined) return connectTcp('path' in address ? { path: address.path } : { ...address, noDelay: true });
  const { roots, serverName, certificate, alternativeNames = [serverName], isUnverified } = tls;
  const options: ConnectionOptions & { noDelay: boolean } = {
    ...address,
    noDelay: true,
    ca: roots,
    ALPNProtocols: ['h2'],
    ...(certificate !== undefined && { cert: certificate.chain, key: privateKeyPem(certificate.key) }),
    // SNI allows neither an address nor a URI (RFC 6066).
    servername: isDnsName(serverName) ? serverName : '',
    checkServerIdentity: (_: string, certificate: PeerCertificate) => {
      const reasons = alternativeNames.map((name) => serverNameMismatch(name, certificate));
      return reasons.some((reason) => reason === undefined) ? undefined : reasons[0];
    },
    ...(isUnverified && { rejectUnauthorized: false }),
  };
  return connectTls(options);
}

function isDnsName(name: string): boolean {
  return isIP(name) === 0 && !name.includes('://');
}

function serverNameMismatch(name: string, certificate: PeerCertificate): Error | undefined {
  if (!name.includes('://')) return checkServerIdentity(name, certificate);
  // Node quotes names that contain a separator.
  const names = (certificate.subjectaltname ?? '').split(', ');
  return names.includes(`URI:${name}`) ? undefined : new Error(`server certificate does not contain ${name}`);
}

function openSession(target: GrpcTarget, socket: Socket, { windowBytes }: GrpcConnectionLimits): ClientHttp2Session {
  const { address, tls } = target;
  const host =
    'path' in address
      ? 'localhost'
      : `${isIP(address.host) === 6 ? `[${address.host}]` : address.host}:${address.port}`;
  const session = connectHttp2(`${tls === undefined ? 'http' : 'https'}://${host}`, {
    createConnection: () => socket,
    maxHeaderListPairs: 128,
    maxSendHeaderBlockLength: maxHeaderBytes,
    settings: { initialWindowSize: windowBytes, enablePush: false, maxHeaderListSize: maxHeaderBytes },
  });
  session.on('error', () => {});
  session.once('connect', () => session.setLocalWindowSize(windowBytes));
  return session;
}

/** `onEnd` is called once, after the messages of the call are read, with `undefined` for OK. */
export function onCallEnd(
  stream: ClientHttp2Stream,
  connection: GrpcConnection,
  onEnd: (status: GrpcError | undefined) => void,
): void {
  let status: { grpcError: GrpcError | undefined } | undefined;
  let protocolError: string | undefined;
  let hasEnded = false;
  const finish = (grpcError: GrpcError | undefined): void => {
    if (!hasEnded) onEnd(grpcError);
    hasEnded = true;
  };
  stream.on('response', (headers) => {
    const isCall = headers[':status'] === 200 && String(headers['content-type']).startsWith('application/grpc');
    if ('grpc-status' in headers || headers[':status'] !== 200) status = { grpcError: statusOf(headers) };
    else if (!isCall) protocolError = `response is not gRPC: content-type ${headers['content-type'] ?? 'missing'}`;
    if (!isCall) stream.close(constants.NGHTTP2_CANCEL);
  });
  stream.on('trailers', (headers) => {
    status ??= { grpcError: statusOf(headers) };
  });
  stream.on('error', (error) => {
    protocolError ??= messageOf(error);
  });
  // Messages before the status have been read; a server may leave its half of the stream open.
  stream.once('end', () =>
    setImmediate(() => {
      if (status !== undefined) {
        finish(status.grpcError);
        stream.close(constants.NGHTTP2_NO_ERROR);
        // Node would close the stream only after written data is flushed, which never happens without a status.
      } else stream.destroy();
    }),
  );
  stream.once('close', () => {
    if (status !== undefined) finish(status.grpcError);
    else if (connection.closeError !== undefined) finish(connection.closeError);
    else finish(new GrpcError('UNAVAILABLE', protocolError ?? 'stream closed without a gRPC status'));
  });
}

export interface UnaryLimits {
  readonly limitMs: number;
  readonly maxBytes: number;
  readonly stopped?: AbortSignal;
}

/** @throws GrpcError */
export function unary(
  connection: GrpcConnection,
  method: string,
  headers: Readonly<Record<string, string>>,
  message: Uint8Array,
  { limitMs, maxBytes, stopped }: UnaryLimits,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const stream = connection.start(method, { 'grpc-timeout': `${Math.ceil(limitMs)}m`, ...headers });
    const reader = new FrameReader({ wholeBytes: maxBytes, maxBytes });
    const messages: Buffer[] = [];
    let failure: GrpcError | undefined;
    const cancelWith = (error: GrpcError): void => {
      failure ??= error;
      stream.close(constants.NGHTTP2_CANCEL);
    };
    const limit = setTimeout(
      () => cancelWith(new GrpcError('DEADLINE_EXCEEDED', `no response within ${limitMs} ms`)),
      limitMs,
    );
    const stop = (): void => cancelWith(new GrpcError('CANCELLED', 'canceled by the client'));
    stopped?.addEventListener('abort', stop, { once: true });
    stream.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk, ({ bytes }) => messages.push(bytes.subarray(frameHeadBytes)));
        if (messages.length > 1) cancelWith(new GrpcError('INTERNAL', 'more than one response message'));
      } catch (error) {
        cancelWith(error as GrpcError);
      }
    });
    onCallEnd(stream, connection, (status) => {
      clearTimeout(limit);
      stopped?.removeEventListener('abort', stop);
      const error = failure ?? status;
      if (error !== undefined) reject(error);
      else if (messages.length === 0) reject(new GrpcError('INTERNAL', 'no response message'));
      else resolve(messages[0]!);
    });
    if (stopped?.aborted) stop();
    else stream.end(frameOf(message));
  });
}
