/**
 * Messages that come a byte at a time. grpc-js keeps each piece of a message as the buffer that it came in until the last one is there:
 * 150 bytes for one, 600 MB for a request of 4 MiB. So small ones are put together as they come. The decoder and what it has of a message
 * are private fields of grpc-js 1.14, so they are looked for by what they are; without them requests are served all the same.
 */
import type { ServerInterceptingCall, ServerInterceptor } from '@grpc/grpc-js';

interface Decoder {
  write(data: Buffer): Buffer[];
  readPartialMessage: Buffer[];
}

/** HTTP/2's own frames have 16 KiB; who sends less has little to say, or means harm. */
const smallBytes = 1024;
const wholeBytes = 16 * 1024;
const mostInterceptors = 8;

/** Before the first byte of each call. */
export const joinsSmallPieces: ServerInterceptor = (_, call) => {
  const decoder = decoderOf(call);
  if (decoder !== undefined) joinSmallPieces(decoder);
  return call as ServerInterceptingCall;
};

export function joinSmallPieces(decoder: Decoder): void {
  const write = decoder.write.bind(decoder);
  decoder.write = (data) => {
    const messages = write(data);
    if (data.length <= smallBytes) joinLast(decoder.readPartialMessage);
    return messages;
  };
}

/** Two of like length become one, as in a counter: each byte is copied a few times, and few pieces are left. */
function joinLast(pieces: Buffer[]): void {
  while (pieces.length > 1) {
    const [one, last] = [pieces.at(-2)!, pieces.at(-1)!];
    if (one.length > last.length || one.length > wholeBytes) return;
    const joined = Buffer.allocUnsafeSlow(one.length + last.length);
    joined.set(one);
    joined.set(last, one.length);
    pieces.splice(-2, 2, joined);
  }
}

function decoderOf(call: unknown): Decoder | undefined {
  let inner = call;
  for (let i = 0; i < mostInterceptors; i++) {
    const decoder = field(inner, 'decoder');
    if (typeof field(decoder, 'write') === 'function' && Array.isArray(field(decoder, 'readPartialMessage')))
      return decoder as Decoder;
    inner = field(inner, 'nextCall');
  }
  return undefined;
}

function field(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? (of as Record<string, unknown>)[name] : undefined;
}
