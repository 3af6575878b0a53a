/**
 * Joins small pieces of messages. grpc-js keeps each received piece as a buffer until the message is complete: 150 bytes for a single byte, 600 MB
 * for a request of 4 MiB. The decoder and its pieces are private fields of grpc-js 1.14, found by their structure.
 */
import type { ServerInterceptingCall, ServerInterceptor } from '@grpc/grpc-js';

interface Decoder {
  write(data: Buffer): Buffer[];
  readPartialMessage: Buffer[];
}

/** HTTP/2 splits large messages into frames of 16 KiB. */
const smallBytes = 1024;
const maxFrameBytes = 16 * 1024;
const maxInterceptors = 8;

export const smallPiecesInterceptor: ServerInterceptor = (_, call) => {
  const decoder = decoderOf(call);
  if (decoder !== undefined) joinSmallPieces(decoder);
  return call as ServerInterceptingCall;
};

export function joinSmallPieces(decoder: Decoder): void {
  const write = decoder.write.bind(decoder);
  decoder.write = (data) => {
    const messages = write(data);
    if (data.length <= smallBytes) joinLastBuffers(decoder.readPartialMessage);
    return messages;
  };
}

/** Joins pieces of similar lengths, as in a binary counter: each byte is copied O(log n) times. */
function joinLastBuffers(buffers: Buffer[]): void {
  while (buffers.length > 1) {
    const [previousBuffer, lastBuffer] = [buffers.at(-2)!, buffers.at(-1)!];
    if (previousBuffer.length > lastBuffer.length || previousBuffer.length > maxFrameBytes) return;
    const joinedBuffer = Buffer.allocUnsafeSlow(previousBuffer.length + lastBuffer.length);
    joinedBuffer.set(previousBuffer);
    joinedBuffer.set(lastBuffer, previousBuffer.length);
    buffers.splice(-2, 2, joinedBuffer);
  }
}

function decoderOf(call: unknown): Decoder | undefined {
  let innerCall = call;
  for (let i = 0; i < maxInterceptors; i++) {
    const decoder = field(innerCall, 'decoder');
    if (typeof field(decoder, 'write') === 'function' && Array.isArray(field(decoder, 'readPartialMessage')))
      return decoder as Decoder;
    innerCall = field(innerCall, 'nextCall');
  }
  return undefined;
}

function field(target: unknown, name: string): unknown {
  return typeof target === 'object' && target !== null ? (target as Record<string, unknown>)[name] : undefined;
}
