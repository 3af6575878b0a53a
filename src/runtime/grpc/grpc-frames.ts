/** Messages of gRPC in a stream of bytes: a flag, a length, then so many bytes. */
import { GrpcError } from './call-status.ts';

export const frameHeadBytes = 5;

/** A message as it is sent. */
export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(frameHeadBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, frameHeadBytes);
  return frame;
}

/** A piece of a message; its first one begins with the frame's head. */
export interface FramePiece {
  readonly bytes: Buffer;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

export interface FrameLimits {
  /** A message up to this comes in one piece. */
  readonly wholeBytes: number;
  /** The first piece of a longer one has at least as many bytes. Default: `wholeBytes`. */
  readonly peekBytes?: number;
  /** A longer message is an error. */
  readonly maxBytes?: number;
}

/**
 * Cuts a stream into messages. A message that is longer than is kept comes in pieces as they arrive: however long messages are,
 * no more than `wholeBytes` and one chunk are held.
 */
export class FrameReader {
  readonly #wholeBytes: number;
  readonly #peekBytes: number;
  readonly #maxBytes: number;
  /** What has come of a message that is not whole, copied: a client may send it a byte at a time, and each would be a buffer of its own. */
  #gathered: Buffer = none;
  #gatheredBytes = 0;
  /** Bytes that are still to come of the message whose first pieces have been handed out; 0: there is none. */
  #restBytes = 0;
  /** Size of the message that is being gathered, or of its first piece, with its head; undefined: the head has not come. */
  #firstPieceBytes: number | undefined;
  #messageBytes = 0;

  constructor({ wholeBytes, peekBytes = wholeBytes, maxBytes = Number.POSITIVE_INFINITY }: FrameLimits) {
    this.#wholeBytes = wholeBytes;
    this.#peekBytes = peekBytes;
    this.#maxBytes = maxBytes;
  }

  /**
   * Calls `take` with each piece that the chunk makes whole. Pieces may share the chunk's memory.
   *
   * @throws GrpcError INTERNAL for a compressed message, RESOURCE_EXHAUSTED for one that is too long
   */
  push(chunk: Buffer, take: (piece: FramePiece) => void): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#restBytes > 0) {
        const bytes = rest.subarray(0, this.#restBytes);
        this.#restBytes -= bytes.length;
        rest = rest.subarray(bytes.length);
        take({ bytes, isFirst: false, isLast: this.#restBytes === 0 });
        continue;
      }
      rest = this.#gather(rest, take);
    }
  }

  /** @returns what is left of the chunk */
  #gather(chunk: Buffer, take: (piece: FramePiece) => void): Buffer {
    // Most come in one chunk: of these nothing is copied.
    if (this.#gatheredBytes === 0 && chunk.length >= frameHeadBytes) {
      this.#readHead(chunk);
      const bytes = this.#firstPieceBytes!;
      if (chunk.length >= bytes) {
        this.#hand(chunk.subarray(0, bytes), take);
        return chunk.subarray(bytes);
      }
    }
    const wanted = this.#firstPieceBytes ?? frameHeadBytes;
    const bytes = chunk.subarray(0, wanted - this.#gatheredBytes);
    const rest = chunk.subarray(bytes.length);
    this.#keep(bytes, wanted);
    if (this.#gatheredBytes < wanted) return none;
    if (this.#firstPieceBytes === undefined) this.#readHead(this.#gathered);
    if (this.#gatheredBytes === this.#firstPieceBytes) {
      this.#hand(this.#gathered.subarray(0, this.#gatheredBytes), take);
    }
    return rest;
  }

  /** Room is made for what comes, and not for what a head promises. */
  #keep(bytes: Buffer, wanted: number): void {
    const needed = this.#gatheredBytes + bytes.length;
    if (needed > this.#gathered.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(wanted, Math.max(needed, 2 * this.#gathered.length)));
      this.#gathered.copy(grown, 0, 0, this.#gatheredBytes);
      this.#gathered = grown;
    }
    bytes.copy(this.#gathered, this.#gatheredBytes);
    this.#gatheredBytes = needed;
  }

  #hand(bytes: Buffer, take: (piece: FramePiece) => void): void {
    this.#restBytes = this.#messageBytes - bytes.length;
    this.#gathered = none;
    this.#gatheredBytes = 0;
    this.#firstPieceBytes = undefined;
    take({ bytes, isFirst: true, isLast: this.#restBytes === 0 });
  }

  #readHead(head: Buffer): void {
    if (head[0] !== 0) throw new GrpcError('INTERNAL', 'compressed or invalid gRPC message');
    const length = head.readUInt32BE(1);
    if (length > this.#maxBytes) {
      throw new GrpcError(
        'RESOURCE_EXHAUSTED',
        `message of ${length} bytes exceeds the limit of ${this.#maxBytes} bytes`,
      );
    }
    this.#messageBytes = frameHeadBytes + length;
    this.#firstPieceBytes = frameHeadBytes + (length <= this.#wholeBytes ? length : Math.min(length, this.#peekBytes));
  }
}

const none = Buffer.alloc(0);
