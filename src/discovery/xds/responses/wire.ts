/** Writes length-delimited protobuf fields into a buffer of known length. Discovery responses contain no other fields. */

const varintBase = 128;

function varintLength(value: number): number {
  let length = 1;
  for (
    let remainingBits = Math.floor(value / varintBase);
    remainingBits > 0;
    remainingBits = Math.floor(remainingBits / varintBase)
  )
    length++;
  return length;
}

/**
 * Length including tag and length prefix.
 *
 * @param content a string, bytes, or the length of a message
 */
export function encodedLength(field: number, content: string | Uint8Array | number): number {
  const length =
    typeof content === 'number' ? content : typeof content === 'string' ? Buffer.byteLength(content) : content.length;
  return varintLength(field * 8) + varintLength(length) + length;
}

/** Creates a buffer for bytes that stay in memory. By default, small buffers are slices of 64 KiB blocks, which they keep in memory too. */
export function allocateBuffer(length: number): Buffer {
  return Buffer.allocUnsafeSlow(length);
}

export function concatChunks(chunks: readonly Uint8Array[]): Buffer {
  const joinedBuffer = allocateBuffer(chunks.reduce((sum, { length }) => sum + length, 0));
  let position = 0;
  for (const chunk of chunks) {
    joinedBuffer.set(chunk, position);
    position += chunk.length;
  }
  return joinedBuffer;
}

export class WireWriter {
  readonly #buffer: Buffer;
  #position = 0;

  /** @param buffer of the final length */
  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get position(): number {
    return this.#position;
  }

  header(field: number, length: number): void {
    this.#varint(field * 8 + 2);
    this.#varint(length);
  }

  text(field: number, content: string): void {
    this.header(field, Buffer.byteLength(content));
    this.#position += this.#buffer.write(content, this.#position);
  }

  bytes(field: number, content: Uint8Array): void {
    this.header(field, content.length);
    this.writeRaw(content);
  }

  writeRaw(content: Uint8Array): void {
    this.#buffer.set(content, this.#position);
    this.#position += content.length;
  }

  /** @throws Error if the buffer is not full */
  finish(): Buffer {
    if (this.#position !== this.#buffer.length) {
      throw new Error(`wrote ${this.#position} of ${this.#buffer.length} bytes`);
    }
    return this.#buffer;
  }

  #varint(value: number): void {
    let remainingBits = value;
    while (remainingBits >= varintBase) {
      this.#buffer[this.#position++] = (remainingBits % varintBase) + varintBase;
      remainingBits = Math.floor(remainingBits / varintBase);
    }
    this.#buffer[this.#position++] = remainingBits;
  }
}
