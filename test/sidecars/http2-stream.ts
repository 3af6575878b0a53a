/**
 * One gRPC stream on a separate connection, as in a proxy: HTTP/2 with or without TLS, directly on the socket. Received bytes are copied once, into
 * the message. Unneeded features (header compression, priorities) are omitted.
 */
import { connect, type Socket } from 'node:net';
import { createSecureContext, type SecureContext, connect as tlsConnect } from 'node:tls';
import { type FrameHead, FrameReader, flags, frame, frameTypes, literalHeaders, settingsOf } from './http2-frames.ts';

/** As large as Envoy's, so that a client that reads never blocks the server. */
const streamWindow = 16 * 1024 * 1024;
const connectionWindow = 24 * 1024 * 1024;
const defaultWindow = 65_535;
/** WINDOW_UPDATE is sent in steps of this size. */
const windowStep = 4 * 1024 * 1024;
const streamId = 1;
const grpcHeadLength = 5;

/** All sockets read into the same buffer, whose content is parsed before the next read. */
const receiveBuffer = Buffer.allocUnsafeSlow(256 * 1024);

/** PEM files of a TLS client. */
export interface ClientTls {
  /** Roots of the server certificate. */
  readonly ca: string;
  /** DNS name in the server certificate. */
  readonly serverName: string;
  /** Client certificate; default: none. */
  readonly certificate?: { readonly chain: string; readonly key: string };
}

export interface GrpcStreamOptions {
  /** TLS session of an earlier connection, to resume. */
  readonly session?: Buffer;
  /** Called with a TLS session for a later connection. */
  onSession?(session: Buffer): void;
  /** Limit for the connection, the handshake and the first byte from the server; default: none. */
  readonly dialMs?: number;
  /** Port on loopback. */
  readonly port: number;
  /** Source address; default: chosen by the system. */
  readonly localAddress?: string;
  /** Default: plaintext. */
  readonly tls?: ClientTls;
  readonly path: string;
  /** Called with a complete message, which may be kept. */
  onMessage(message: Buffer): void;
  /** Called once, whether the server, the network or {@link GrpcStream.close} ended the stream. */
  onEnd(reason: string): void;
}

export class GrpcStream {
  /** Bytes of messages including gRPC's five-byte prefix. */
  messageBytes = 0;
  readonly #options: GrpcStreamOptions;
  readonly #socket: Socket;
  readonly #frames: FrameReader;
  readonly #messages: MessageReader;
  #hasEnded = false;
  #dialTimer: NodeJS.Timeout | undefined;
  #unreported = 0;
  #peer = { streamWindow: defaultWindow, connectionWindow: defaultWindow, initialWindow: defaultWindow, frame: 16_384 };
  #pendingWrites: Buffer[] = [];

  constructor(options: GrpcStreamOptions) {
    this.#options = options;
    this.#messages = new MessageReader((message) => {
      this.messageBytes += message.length + grpcHeadLength;
      if (!this.#hasEnded) options.onMessage(message);
    });
    this.#frames = new FrameReader({
      onData: (bytes) => this.#messages.take(bytes),
      onFrame: (head, payload) => this.#onFrame(head, payload),
    });
    this.#socket = this.#connect(options);
    const { dialMs } = options;
    if (dialMs !== undefined) {
      this.#dialTimer = setTimeout(() => this.#end(`no connection within ${dialMs} ms`), dialMs);
    }
    this.#socket.on('error', (error) => this.#end(error.message));
    this.#socket.on('close', () => this.#end('the connection was closed'));
    this.#socket.write(opening(options));
  }

  /** Sends a message as soon as the server's windows allow it. */
  send(message: Buffer): void {
    if (this.#hasEnded) return;
    const head = Buffer.alloc(grpcHeadLength);
    head.writeUInt32BE(message.length, 1);
    this.#pendingWrites.push(Buffer.concat([head, message]));
    this.#flush();
  }

  /** Stops reading until {@link resume}, so that the server's buffers fill up. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Resets the connection, like a process that crashes. */
  close(): void {
    this.#end('closed by the client');
  }

  #connect({ port, localAddress, tls, session, onSession }: GrpcStreamOptions): Socket {
    const options = { host: '127.0.0.1', port, ...(localAddress !== undefined && { localAddress }), noDelay: true };
    if (tls === undefined) {
      return connect({
        ...options,
        onread: { buffer: receiveBuffer, callback: (length, bytes) => this.#onBytes(bytes as Buffer, length) },
      });
    }
    const { serverName: servername } = tls;
    const socket = tlsConnect({
      ...{ ...options, servername, ALPNProtocols: ['h2'], secureContext: secureContextOf(tls) },
      ...(session !== undefined && { session }),
    });
    if (onSession !== undefined) socket.on('session', onSession);
    return socket.on('data', (bytes) => this.#onBytes(bytes, bytes.length));
  }

  #onBytes(bytes: Buffer, length: number): boolean {
    clearTimeout(this.#dialTimer);
    try {
      if (!this.#hasEnded) this.#frames.take(bytes, length);
    } catch (error) {
      this.#end(`cannot be read: ${String(error)}`);
    }
    return true;
  }

  #onFrame(head: FrameHead, payload: Buffer): void {
    switch (head.type) {
      case frameTypes.data:
        this.#credit(head.length);
        break;
      case frameTypes.settings:
        if ((head.flags & flags.ack) === 0) this.#applySettings(payload);
        break;
      case frameTypes.ping:
        if ((head.flags & flags.ack) === 0) this.#socket.write(frame(frameTypes.ping, flags.ack, 0, payload));
        break;
      case frameTypes.windowUpdate:
        if (head.stream === 0) this.#peer.connectionWindow += payload.readUInt32BE(0);
        else this.#peer.streamWindow += payload.readUInt32BE(0);
        this.#flush();
        break;
      case frameTypes.resetStream:
        this.#end(`the server reset the stream: HTTP/2 error ${payload.readUInt32BE(0)}`);
        return;
    }
    const canEnd = head.type === frameTypes.data || head.type === frameTypes.headers;
    if (canEnd && (head.flags & flags.endStream) !== 0) this.#end('the server ended the stream');
  }

  #credit(length: number): void {
    this.#unreported += length;
    if (this.#unreported < windowStep) return;
    this.#socket.write(Buffer.concat([windowUpdate(0, this.#unreported), windowUpdate(streamId, this.#unreported)]));
    this.#unreported = 0;
  }

  #applySettings(payload: Buffer): void {
    const { initialWindow = this.#peer.initialWindow, maxFrame = this.#peer.frame } = settingsOf(payload);
    this.#peer.streamWindow += initialWindow - this.#peer.initialWindow;
    this.#peer.initialWindow = initialWindow;
    this.#peer.frame = maxFrame;
    this.#socket.write(frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0)));
    this.#flush();
  }

  /** Sends as much as the server's windows allow. */
  #flush(): void {
    const outgoing: Buffer[] = [];
    while (this.#pendingWrites.length > 0) {
      const bytes = this.#pendingWrites[0]!;
      const length = Math.min(bytes.length, this.#peer.frame, this.#peer.streamWindow, this.#peer.connectionWindow);
      if (length <= 0) break;
      outgoing.push(frame(frameTypes.data, 0, streamId, bytes.subarray(0, length)));
      this.#peer.streamWindow -= length;
      this.#peer.connectionWindow -= length;
      if (length === bytes.length) this.#pendingWrites.shift();
      else this.#pendingWrites[0] = bytes.subarray(length);
    }
    if (outgoing.length > 0) this.#socket.write(outgoing.length === 1 ? outgoing[0]! : Buffer.concat(outgoing));
  }

  #end(reason: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearTimeout(this.#dialTimer);
    this.#socket.destroy();
    this.#options.onEnd(reason);
  }
}

const contexts = new WeakMap<ClientTls, SecureContext>();

/** Shared by all streams with the same files. */
function secureContextOf(tls: ClientTls): SecureContext {
  const { ca, certificate } = tls;
  const cachedContext = contexts.get(tls);
  if (cachedContext !== undefined) return cachedContext;
  const context = createSecureContext({
    ca,
    ...(certificate !== undefined && { cert: certificate.chain, key: certificate.key }),
  });
  contexts.set(tls, context);
  return context;
}

/** Joins pieces of any length to gRPC messages. */
class MessageReader {
  readonly #onMessage: (message: Buffer) => void;
  readonly #head = Buffer.alloc(grpcHeadLength);
  #headLength = 0;
  #message: Buffer | undefined;
  #length = 0;

  constructor(onMessage: (message: Buffer) => void) {
    this.#onMessage = onMessage;
  }

  take(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#message === undefined) {
        this.#head[this.#headLength++] = bytes[at++]!;
        if (this.#headLength < grpcHeadLength) continue;
        if (this.#head[0] !== 0) throw new Error('a compressed message, which nobody asked for');
        this.#message = Buffer.allocUnsafe(this.#head.readUInt32BE(1));
        this.#length = 0;
      }
      const copied = bytes.copy(this.#message, this.#length, at);
      at += copied;
      this.#length += copied;
      if (this.#length < this.#message.length) continue;
      const message = this.#message;
      this.#message = undefined;
      this.#headLength = 0;
      this.#onMessage(message);
    }
  }
}

function opening({ port, path, tls }: GrpcStreamOptions): Buffer {
  const settings = Buffer.alloc(12);
  // ENABLE_PUSH 0, INITIAL_WINDOW_SIZE.
  settings.writeUInt16BE(2, 0);
  settings.writeUInt16BE(4, 6);
  settings.writeUInt32BE(streamWindow, 8);
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(frameTypes.settings, 0, 0, settings),
    windowUpdate(0, connectionWindow - defaultWindow),
    frame(
      frameTypes.headers,
      flags.endHeaders,
      streamId,
      literalHeaders({
        ':method': 'POST',
        ':scheme': tls === undefined ? 'http' : 'https',
        ':path': path,
        ':authority': `127.0.0.1:${port}`,
        'content-type': 'application/grpc',
        te: 'trailers',
      }),
    ),
  ]);
}

function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes, 0);
  return frame(frameTypes.windowUpdate, 0, stream, payload);
}
