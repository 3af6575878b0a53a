/** gRPC messages in a byte stream: a flag, the length, and the message. */
import { GrpcError } from './call-status.ts';

export const frameHeadBytes = 5;

export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(frameHeadBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, frameHeadBytes);
  return frame;
}

/** The first piece starts with the frame header. */
export interface FramePiece {
  readonly bytes: Buffer;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

export interface FrameLimits {
  /** A message up to this size is returned in one piece. */
  readonly wholeBytes: number;
  /** Minimum size of the first piece of a longer message. Default: `wholeBytes`. */
  readonly peekBytes?: number;
  readonly maxBytes?: number;
}

/** A message longer than `wholeBytes` is returned in pieces as they arrive, so the reader keeps at most `wholeBytes` and one chunk. */
export class FrameReader {
  readonly #maxBufferedBytes: number;
  readonly #peekBytes: number;
  readonly #maxBytes: number;
  /** The bytes are copied, because a client may send single bytes, each of which would be a buffer. */
  #gatheredChunk: Buffer = emptyBuffer;
  #gatheredBytes = 0;
  #restBytes = 0;
  #firstPieceBytes: number | undefined;
  #messageBytes = 0;

  constructor({ wholeBytes, peekBytes = wholeBytes, maxBytes = Number.POSITIVE_INFINITY }: FrameLimits) {
    this.#maxBufferedBytes = wholeBytes;
    this.#peekBytes = peekBytes;
    this.#maxBytes = maxBytes;
  }

  /**
   * Pieces may share the chunk's memory.
   * @throws GrpcError INTERNAL for a compressed message, RESOURCE_EXHAUSTED for one that is too long
   */
  push(chunk: Buffer, onPiece: (piece: FramePiece) => void): void {
    let remainingBytes = chunk;
    while (remainingBytes.length > 0) {
      if (this.#restBytes > 0) {
        const bytes = remainingBytes.subarray(0, this.#restBytes);
        this.#restBytes -= bytes.length;
        remainingBytes = remainingBytes.subarray(bytes.length);
        onPiece({ bytes, isFirst: false, isLast: this.#restBytes === 0 });
        continue;
      }
      remainingBytes = this.#gatherHead(remainingBytes, onPiece);
    }
  }

  #gatherHead(chunk: Buffer, onPiece: (piece: FramePiece) => void): Buffer {
    // Most messages arrive in one chunk and are not copied.
    if (this.#gatheredBytes === 0 && chunk.length >= frameHeadBytes) {
      this.#readHead(chunk);
      const bytes = this.#firstPieceBytes!;
      if (chunk.length >= bytes) {
        this.#deliver(chunk.subarray(0, bytes), onPiece);
        return chunk.subarray(bytes);
      }
    }
    const pieceBytes = this.#firstPieceBytes ?? frameHeadBytes;
    const bytes = chunk.subarray(0, pieceBytes - this.#gatheredBytes);
    const remainingBytes = chunk.subarray(bytes.length);
    this.#store(bytes, pieceBytes);
    if (this.#gatheredBytes < pieceBytes) return emptyBuffer;
    if (this.#firstPieceBytes === undefined) this.#readHead(this.#gatheredChunk);
    if (this.#gatheredBytes === this.#firstPieceBytes) {
      this.#deliver(this.#gatheredChunk.subarray(0, this.#gatheredBytes), onPiece);
    }
    return remainingBytes;
  }

  /** Memory is allocated for received bytes, not for the announced length. */
  #store(bytes: Buffer, pieceBytes: number): void {
    const neededBytes = this.#gatheredBytes + bytes.length;
    if (neededBytes > this.#gatheredChunk.length) {
      const largerBuffer = Buffer.allocUnsafeSlow(
        Math.min(pieceBytes, Math.max(neededBytes, 2 * this.#gatheredChunk.length)),
      );
      this.#gatheredChunk.copy(largerBuffer, 0, 0, this.#gatheredBytes);
      this.#gatheredChunk = largerBuffer;
    }
    bytes.copy(this.#gatheredChunk, this.#gatheredBytes);
    this.#gatheredBytes = neededBytes;
  }

  #deliver(bytes: Buffer, onPiece: (piece: FramePiece) => void): void {
    this.#restBytes = this.#messageBytes - bytes.length;
    this.#gatheredChunk = emptyBuffer;
    this.#gatheredBytes = 0;
    this.#firstPieceBytes = undefined;
    onPiece({ bytes, isFirst: true, isLast: this.#restBytes === 0 });
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
    this.#firstPieceBytes =
      frameHeadBytes + (length <= this.#maxBufferedBytes ? length : Math.min(length, this.#peekBytes));
  }
}

const emptyBuffer = Buffer.alloc(0);
