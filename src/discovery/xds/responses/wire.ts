/**
 * Writes length-delimited protobuf fields, which is all that discovery responses need, into a buffer of known length.
 */

const varintBase = 128;

function varintLength(value: number): number {
  let length = 1;
  for (let rest = Math.floor(value / varintBase); rest > 0; rest = Math.floor(rest / varintBase)) length++;
  return length;
}

/**
 * Encoded length of a field, including tag and length.
 *
 * @param content a string, bytes, or the length of a message.
 */
export function encodedLength(field: number, content: string | Uint8Array | number): number {
  const length =
    typeof content === 'number' ? content : typeof content === 'string' ? Buffer.byteLength(content) : content.length;
  return varintLength(field * 8) + varintLength(length) + length;
}

/**
 * A buffer with its own memory, for bytes that are kept. Usual small buffers are slices of 64 KiB blocks and would keep
 * the whole block alive.
 */
export function keptBuffer(length: number): Buffer {
  return Buffer.allocUnsafeSlow(length);
}

export function keptConcat(chunks: readonly Uint8Array[]): Buffer {
  const joined = keptBuffer(chunks.reduce((sum, { length }) => sum + length, 0));
  let position = 0;
  for (const chunk of chunks) {
    joined.set(chunk, position);
    position += chunk.length;
  }
  return joined;
}

export class WireWriter {
  readonly #buffer: Buffer;
  #position = 0;

  /** @param buffer of the final length; see {@link keptBuffer} */
  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get position(): number {
    return this.#position;
  }

  /** Tag and length of a field whose content follows. */
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
    this.raw(content);
  }

  /** Encoded fields. */
  raw(content: Uint8Array): void {
    this.#buffer.set(content, this.#position);
    this.#position += content.length;
  }

  /** The buffer, which must be full. */
  finish(): Buffer {
    if (this.#position !== this.#buffer.length) {
      throw new Error(`wrote ${this.#position} of ${this.#buffer.length} bytes`);
    }
    return this.#buffer;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= varintBase) {
      this.#buffer[this.#position++] = (rest % varintBase) + varintBase;
      rest = Math.floor(rest / varintBase);
    }
    this.#buffer[this.#position++] = rest;
  }
}
