/** Writes responses to a stream, either through grpc-js' writer, which copies them for each client, or directly to its HTTP/2 stream. */
import { constants, type OutgoingHttpHeaders } from 'node:http2';
import type { Writable } from 'node:stream';
import { Metadata, type ServerDuplexStream, status } from '@grpc/grpc-js';
import type { EndCode } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { visibleLine } from '../../../runtime/visible-text.ts';
import type { CallPeer } from '../access/authenticator.ts';
import type { MessageDecoder } from '../requests/known-runs.ts';
import { byteLengthOf, type ResponseParts } from '../responses/ads-response.ts';

export type AdsCall = ServerDuplexStream<Buffer, Buffer>;

export interface AdsTransport {
  readonly sendMode: 'shared frames' | 'copies';
  /**
   * @param flushed called once after the bytes were passed to the socket, or with an error
   * @returns bytes of the response
   */
  send(parts: ResponseParts, flushed: (error?: Error | null) => void): number;
  end(code: EndCode, reason: string): void;
  /** Closes the client's side of an ended stream. With an error code (RST_STREAM), clients of gRPC's C core would ignore the status. */
  finish(): void;
  abort(): void;
  /** `undefined` if no status was sent. */
  readonly sentCode: string | undefined;
  /** Whether everything including the status was sent or can never be sent. */
  readonly isDone: boolean;
  onDone(onDone: () => void): void;
}

/** Uses shared frames if the private HTTP/2 stream of grpc-js is found. */
export function transportOf(call: AdsCall): AdsTransport {
  const stream = http2StreamOf(call);
  return stream === undefined ? copyingTransport(call) : sharingTransport(call, stream);
}

export function copyingTransport(call: AdsCall): AdsTransport {
  return {
    sendMode: 'copies',
    send({ head, trailingChunks: shared }, flushed) {
      const message = Buffer.concat([head, ...shared]);
      call.write(message, flushed);
      return message.length;
    },
    end: (code, reason) => endCall(call, code, reason),
    finish: () => {},
    abort: () => void call.end(),
    sentCode: undefined,
    get isDone() {
      return isDone(call);
    },
    onDone: (onEnd) => onDone(call, onEnd),
  };
}

/** Compression flag (0: none) and length of a gRPC message. */
const prefixBytes = 5;
/** Smaller parts are copied, because writing them separately costs more. */
const maxCopiedBytes = 8 * 1024;

/**
 * Node keeps a buffer as large as the largest write for the life of a TLS connection (NodeBIO, in steps of 16 KiB): a response of 225 KiB cost each
 * connection 225 KiB. Two writes with frames and records fit into one step.
 */
const maxSecureWriteBytes = 8_000;

/** Avoids the copy of grpc-js' writer. grpc-js still sends headers and status. */
function sharingTransport(call: AdsCall, stream: Http2Stream): AdsTransport {
  let isBegun = false;
  const isSecure = stream.session?.encrypted === true;
  // Without `_writev`, a stream writes each queued piece after the previous one.
  if (isSecure) Object.assign(stream, { _writev: null });
  return {
    sendMode: 'shared frames',
    send(responseParts, flushed) {
      const { head, trailingChunks: shared } = responseParts;
      const length = byteLengthOf(responseParts);
      if (!isBegun) {
        isBegun = true;
        call.sendMetadata(new Metadata());
      }
      if (!stream.writable) {
        flushed(Object.assign(new Error('the stream is closed'), { code: 'ERR_STREAM_DESTROYED' }));
        return length;
      }
      const isSmall = length <= maxCopiedBytes;
      const frame = Buffer.allocUnsafe(prefixBytes + (isSmall ? length : head.length));
      frame[0] = 0;
      frame.writeUInt32BE(length, 1);
      let writeOffset = prefixBytes;
      for (const chunk of isSmall ? [head, ...shared] : [head]) {
        frame.set(chunk, writeOffset);
        writeOffset += chunk.length;
      }
      const chunks = isSmall ? [frame] : [frame, ...shared];
      writeChunks(stream, isSecure ? secureWrites(chunks) : chunks, flushed);
      return length;
    },
    end: (code, reason) => endCall(call, code, reason),
    // Node sends RST_STREAM after queued data, without an error code, as RFC 9113 §8.1 requires.
    finish: () => stream.close(constants.NGHTTP2_NO_ERROR),
    abort: () => stream.close(constants.NGHTTP2_CANCEL),
    get sentCode() {
      const code = stream.sentTrailers?.['grpc-status'] ?? stream.sentHeaders?.['grpc-status'];
      return code === undefined ? undefined : status[Number(code)];
    },
    // The call itself finishes as soon as it is ended, because it does not know of data that bypasses it.
    get isDone() {
      return isDone(stream);
    },
    onDone: (onEnd) => onDone(stream, onEnd),
  };
}

type EndingStream = Pick<Writable, 'writableFinished' | 'destroyed' | 'once'>;

const isDone = (endingStream: EndingStream): boolean => endingStream.writableFinished || endingStream.destroyed;

function onDone(of: EndingStream, onEnd: () => void): void {
  of.once('finish', onEnd);
  of.once('close', onEnd);
}

function writeChunks(
  stream: Http2Stream,
  chunks: readonly Uint8Array[],
  flushed: (error?: Error | null) => void,
): void {
  stream.cork();
  chunks.forEach((chunk, i) => {
    if (i < chunks.length - 1) stream.write(chunk);
    else stream.write(chunk, flushed);
  });
  stream.uncork();
}

/** Splits large parts into views and joins small ones, because each write takes an iteration of the event loop. */
function secureWrites(chunks: readonly Uint8Array[]): Uint8Array[] {
  const writtenChunks: Uint8Array[] = [];
  let joinedChunks: Uint8Array[] = [];
  let length = 0;
  const flush = (): void => {
    if (joinedChunks.length > 0)
      writtenChunks.push(joinedChunks.length === 1 ? joinedChunks[0]! : Buffer.concat(joinedChunks));
    joinedChunks = [];
    length = 0;
  };
  for (const chunk of chunks) {
    for (let chunkOffset = 0; chunkOffset < chunk.length || chunkOffset === 0; chunkOffset += maxSecureWriteBytes) {
      const slice = chunk.subarray(chunkOffset, chunkOffset + maxSecureWriteBytes);
      if (length + slice.length > maxSecureWriteBytes) flush();
      joinedChunks.push(slice);
      length += slice.length;
    }
  }
  flush();
  return writtenChunks;
}

/** Closes a stream whose response is complete, because further messages of the client would not be read. */
export function endOpenSide(call: AdsCall): void {
  http2StreamOf(call)?.close(constants.NGHTTP2_NO_ERROR);
}

/** A certificate is used only if TLS has verified it. */
export function peerOf(call: Pick<AdsCall, 'getPeer' | 'metadata' | 'getAuthContext'>): CallPeer {
  const address = call.getPeer();
  return {
    ...{ address, host: address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '') },
    metadata: (name) => call.metadata.get(name).map(String),
    certificate: call.getAuthContext().sslPeerCertificate,
  };
}

function endCall(call: AdsCall, code: EndCode, reason: string): void {
  if (code === 'OK') {
    call.end();
    return;
  }
  // Escaped, because clients log the text, which can quote a client or object.
  const details = visibleLine(reason);
  call.emit('error', Object.assign(new Error(details), { code: status[code], details }));
}

/** Only this part of Node's ServerHttp2Stream is used. */
interface Http2Stream extends EndingStream {
  readonly writable: boolean;
  readonly session?: { readonly encrypted?: boolean };
  readonly sentHeaders?: OutgoingHttpHeaders;
  readonly sentTrailers?: OutgoingHttpHeaders;
  close(code: number): void;
  write(bytes: Uint8Array, flushed?: (error?: Error | null) => void): boolean;
  cork(): void;
  uncork(): void;
}

/** Interceptors wrap the call that owns the stream. */
const maxInterceptors = 8;

/** Like the HTTP/2 stream, the decoder is found by its structure. */
export function replaceDecoder(
  call: AdsCall,
  wrapDecoder: (grpcDecoder: MessageDecoder, isAtRest: () => boolean) => MessageDecoder,
): void {
  const streamCall = callWithStream(call);
  const grpcDecoder = field(streamCall, 'decoder');
  if (typeof field(grpcDecoder, 'write') !== 'function' || field(grpcDecoder, 'readState') !== idleDecoderState) return;
  const decoder = grpcDecoder as MessageDecoder;
  Object.assign(streamCall!, { decoder: wrapDecoder(decoder, () => field(decoder, 'readState') === idleDecoderState) });
}

/** `NO_DATA` of grpc-js' stream decoder. */
const idleDecoderState = 0;

/** Private in grpc-js 1.14, so found by its structure. */
function http2StreamOf(call: AdsCall): Http2Stream | undefined {
  return field(callWithStream(call), 'stream') as Http2Stream | undefined;
}

function callWithStream(call: AdsCall): object | undefined {
  let innerCall = field(call, 'call');
  for (let i = 0; i < maxInterceptors && innerCall !== undefined; i++) {
    if (isHttp2Stream(field(innerCall, 'stream'))) return innerCall as object;
    innerCall = field(innerCall, 'nextCall');
  }
  return undefined;
}

function field(target: unknown, name: string): unknown {
  return typeof target === 'object' && target !== null ? (target as Record<string, unknown>)[name] : undefined;
}

function isHttp2Stream(value: unknown): value is Http2Stream {
  return (
    typeof field(value, 'writable') === 'boolean' &&
    // A server's HTTP/2 stream has a session and can respond.
    typeof field(value, 'session') === 'object' &&
    ['write', 'cork', 'uncork', 'respond', 'close'].every((method) => typeof field(value, method) === 'function')
  );
}

const disconnectCodes: ReadonlySet<unknown> = new Set([
  'ECANCELED',
  'ECONNRESET',
  'EPIPE',
  'ERR_HTTP2_INVALID_STREAM',
  'ERR_HTTP2_STREAM_CANCEL',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** The end of the stream reports this too. */
export function isClientDisconnected(error: Error): boolean {
  return disconnectCodes.has((error as NodeJS.ErrnoException).code);
}
