/**
 * How a response's bytes get onto a stream. Two ways, the same on the wire: through grpc-js' own writer, which copies
 * every response for every client, and past it, which writes shared bytes as they are.
 */
import { constants } from 'node:http2';
import type { Writable } from 'node:stream';
import { Metadata, type ServerDuplexStream, status } from '@grpc/grpc-js';
import type { EndCode } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { visibleLine } from '../../../runtime/visible-text.ts';
import type { Peer } from '../access/authenticator.ts';
import type { MessageDecoder } from '../requests/known-runs.ts';
import { bytesIn, type ResponseParts } from '../responses/ads-response.ts';

export type AdsCall = ServerDuplexStream<Buffer, Buffer>;

export interface AdsTransport {
  /** Whether shared bytes are written as they are, or copied for this client. */
  readonly way: 'shared frames' | 'copies';
  /**
   * Writes one response.
   *
   * @param flushed called once: when the bytes have left our hands, or with the reason why they never will.
   * @returns the response's length in bytes.
   */
  send(parts: ResponseParts, flushed: (error?: Error | null) => void): number;
  /** Ends the stream after what was sent. */
  end(code: EndCode, reason: string): void;
  /**
   * Closes the client's side of a stream that was ended, as soon as the status has left. An error code instead (RST_STREAM) takes precedence
   * over the status in clients of gRPC's C core.
   */
  finish(): void;
  /** Ends the stream at once, with what was not sent. */
  cut(): void;
  /** Whether all that was sent has left, and the status after it, or none of it ever will. */
  readonly isDone: boolean;
  /** @param done called when {@link isDone} has become true */
  onDone(done: () => void): void;
}

/** The way that is open: grpc-js keeps its HTTP/2 stream to itself, and may keep it somewhere else one day. */
export function transportOf(call: AdsCall): AdsTransport {
  const stream = http2StreamOf(call);
  return stream === undefined ? copyingTransport(call) : sharingTransport(call, stream);
}

/** Through grpc-js' own writer. */
export function copyingTransport(call: AdsCall): AdsTransport {
  return {
    way: 'copies',
    send({ own, shared }, flushed) {
      const message = Buffer.concat([own, ...shared]);
      call.write(message, flushed);
      return message.length;
    },
    end: (code, reason) => endCall(call, code, reason),
    finish: () => {},
    cut: () => void call.end(),
    get isDone() {
      return isDone(call);
    },
    onDone: (done) => onDone(call, done),
  };
}

/** A gRPC message's compression flag (0: none) and length come before it. */
const prefixBytes = 5;
/** Bytes that are copied rather than written on their own: a write costs more than that. */
const maxCopiedBytes = 8 * 1024;

/**
 * Bytes of a write to a connection with TLS. Node keeps a buffer as large as the largest write for the life of such a connection (NodeBIO, in steps
 * of 16 KiB): a response of 225 KiB cost each of them 225 KiB. Two writes with their frames and records fit into one step.
 */
const maxSecureWriteBytes = 8_000;

/**
 * Past grpc-js' writer, which would copy, onto the HTTP/2 stream under it, which does not. Everything else is grpc-js':
 * the headers before and the status after.
 */
function sharingTransport(call: AdsCall, stream: Http2Stream): AdsTransport {
  let isBegun = false;
  const isSecure = stream.session?.encrypted === true;
  // Without it, a stream writes what is queued piece by piece, each when the one before has left.
  if (isSecure) Object.assign(stream, { _writev: null });
  return {
    way: 'shared frames',
    send(parts, flushed) {
      const { own, shared } = parts;
      const length = bytesIn(parts);
      if (!isBegun) {
        isBegun = true;
        call.sendMetadata(new Metadata());
      }
      if (!stream.writable) {
        flushed(Object.assign(new Error('the stream is closed'), { code: 'ERR_STREAM_DESTROYED' }));
        return length;
      }
      const isSmall = length <= maxCopiedBytes;
      const head = Buffer.allocUnsafe(prefixBytes + (isSmall ? length : own.length));
      head[0] = 0;
      head.writeUInt32BE(length, 1);
      let at = prefixBytes;
      for (const part of isSmall ? [own, ...shared] : [own]) {
        head.set(part, at);
        at += part.length;
      }
      const all = isSmall ? [head] : [head, ...shared];
      writeAll(stream, isSecure ? secureWrites(all) : all, flushed);
      return length;
    },
    end: (code, reason) => endCall(call, code, reason),
    // Node sends it after what is queued, and without an error code, as RFC 9113 §8.1 has it.
    finish: () => stream.close(constants.NGHTTP2_NO_ERROR),
    cut: () => stream.close(constants.NGHTTP2_CANCEL),
    // The call counts as finished as soon as it was told to end: it knows nothing of what was written past it.
    get isDone() {
      return isDone(stream);
    },
    onDone: (done) => onDone(stream, done),
  };
}

type Ending = Pick<Writable, 'writableFinished' | 'destroyed' | 'once'>;

const isDone = (of: Ending): boolean => of.writableFinished || of.destroyed;

function onDone(of: Ending, done: () => void): void {
  of.once('finish', done);
  of.once('close', done);
}

/** Writes all parts in one go: corked writes leave together. */
function writeAll(stream: Http2Stream, parts: readonly Uint8Array[], flushed: (error?: Error | null) => void): void {
  stream.cork();
  parts.forEach((part, i) => {
    if (i < parts.length - 1) stream.write(part);
    else stream.write(part, flushed);
  });
  stream.uncork();
}

/** Divides large parts into views, and joins small ones: each write waits for a turn of the event loop. */
function secureWrites(parts: readonly Uint8Array[]): Uint8Array[] {
  const writes: Uint8Array[] = [];
  let joined: Uint8Array[] = [];
  let length = 0;
  const flush = (): void => {
    if (joined.length > 0) writes.push(joined.length === 1 ? joined[0]! : Buffer.concat(joined));
    joined = [];
    length = 0;
  };
  for (const part of parts) {
    for (let at = 0; at < part.length || at === 0; at += maxSecureWriteBytes) {
      const piece = part.subarray(at, at + maxSecureWriteBytes);
      if (length + piece.length > maxSecureWriteBytes) flush();
      joined.push(piece);
      length += piece.length;
    }
  }
  flush();
  return writes;
}

/** Ends a stream that was answered in full, and that its client may leave open: nothing of it would be read. */
export function endOpenSide(call: AdsCall): void {
  http2StreamOf(call)?.close(constants.NGHTTP2_NO_ERROR);
}

/** What the client shows of itself. A certificate counts only when TLS has verified it. */
export function peerOf(call: Pick<AdsCall, 'getPeer' | 'metadata' | 'getAuthContext'>): Peer {
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
  // A client writes it into its log, and it may quote what the client or an object contains.
  const details = visibleLine(reason);
  call.emit('error', Object.assign(new Error(details), { code: status[code], details }));
}

/** What is used of node's ServerHttp2Stream. */
interface Http2Stream extends Ending {
  readonly writable: boolean;
  readonly session?: { readonly encrypted?: boolean };
  close(code: number): void;
  write(bytes: Uint8Array, flushed?: (error?: Error | null) => void): boolean;
  cork(): void;
  uncork(): void;
}

/** Interceptors lie around the call that has the stream, each with the next one in it. */
const maxInterceptors = 8;

/**
 * Has a call's requests put together by another decoder, where grpc-js' own is found: it is looked for by what it can do, as the
 * HTTP/2 stream is.
 *
 * @param replaced makes the one that stands before grpc-js' own
 */
export function replaceDecoder(
  call: AdsCall,
  replaced: (own: MessageDecoder, isAtRest: () => boolean) => MessageDecoder,
): void {
  const inner = callWithStream(call);
  const own = field(inner, 'decoder');
  if (typeof field(own, 'write') !== 'function' || field(own, 'readState') !== decoderAtRest) return;
  const decoder = own as MessageDecoder;
  Object.assign(inner!, { decoder: replaced(decoder, () => field(decoder, 'readState') === decoderAtRest) });
}

/** `NO_DATA` of grpc-js' stream decoder. */
const decoderAtRest = 0;

/** The HTTP/2 stream of a call of grpc-js 1.14: a private field, so it is looked for by what it can do. */
function http2StreamOf(call: AdsCall): Http2Stream | undefined {
  return field(callWithStream(call), 'stream') as Http2Stream | undefined;
}

function callWithStream(call: AdsCall): object | undefined {
  let inner = field(call, 'call');
  for (let i = 0; i < maxInterceptors && inner !== undefined; i++) {
    if (isHttp2Stream(field(inner, 'stream'))) return inner as object;
    inner = field(inner, 'nextCall');
  }
  return undefined;
}

function field(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? (of as Record<string, unknown>)[name] : undefined;
}

function isHttp2Stream(value: unknown): value is Http2Stream {
  return (
    typeof field(value, 'writable') === 'boolean' &&
    // What tells an HTTP/2 stream of a server from any other writable: its session, and that it can respond.
    typeof field(value, 'session') === 'object' &&
    ['write', 'cork', 'uncork', 'respond', 'close'].every((method) => typeof field(value, method) === 'function')
  );
}

const goneCodes: ReadonlySet<unknown> = new Set([
  'ECANCELED',
  'ECONNRESET',
  'EPIPE',
  'ERR_HTTP2_INVALID_STREAM',
  'ERR_HTTP2_STREAM_CANCEL',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** Whether a write failed because there is nobody any more: the stream's end tells of that. */
export function isClientGone(error: Error): boolean {
  return goneCodes.has((error as NodeJS.ErrnoException).code);
}
