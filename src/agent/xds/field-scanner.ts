import { WireType } from '@bufbuild/protobuf/wire';

/** Reads short fields without buffering the message, because a response of many megabytes has type and nonce after its resources. */
export class FieldScanner {
  readonly #fields: ReadonlySet<number>;
  readonly #fieldTexts = new Map<number, string>();
  #field = 0;
  #expectedPart: 'tag' | 'length' | 'number' | 'bytes' = 'tag';
  #varint = 0;
  #shift = 1;
  #remainingBytes = 0;
  #bufferedChunks: Buffer[] | undefined;
  #isOutOfSync = false;

  constructor(fields: ReadonlySet<number>) {
    this.#fields = fields;
  }

  /** Contains the last value of repeated fields. Excludes fields that are too long, and all after invalid bytes. */
  get foundFields(): ReadonlyMap<number, string> {
    return this.#fieldTexts;
  }

  push(chunk: Buffer): void {
    let offset = 0;
    while (offset < chunk.length && !this.#isOutOfSync) {
      if (this.#expectedPart === 'bytes') {
        const bytes = chunk.subarray(offset, offset + this.#remainingBytes);
        this.#takeBytes(bytes);
        offset += bytes.length;
      } else {
        this.#takeByte(chunk[offset]!);
        offset++;
      }
    }
  }

  #takeByte(byte: number): void {
    this.#varint += (byte & 0x7f) * this.#shift;
    this.#shift *= 128;
    // Tags and lengths have at most five bytes; a skipped number may have more.
    if (byte >= 0x80) {
      this.#isOutOfSync = this.#expectedPart !== 'number' && this.#shift > 2 ** 35;
      return;
    }
    const value = this.#varint;
    this.#varint = 0;
    this.#shift = 1;
    if (this.#expectedPart === 'tag') this.#takeTag(value);
    else if (this.#expectedPart === 'length') this.#expectBytes(value);
    else this.#expectedPart = 'tag';
  }

  #takeTag(tag: number): void {
    this.#field = Math.floor(tag / 8);
    const wireType = tag % 8;
    this.#bufferedChunks = undefined;
    if (wireType === WireType.LengthDelimited) this.#expectedPart = 'length';
    else if (wireType === WireType.Varint) this.#expectedPart = 'number';
    else if (wireType === WireType.Bit64) this.#skip(8);
    else if (wireType === WireType.Bit32) this.#skip(4);
    else this.#isOutOfSync = true;
  }

  #expectBytes(bytes: number): void {
    this.#bufferedChunks = this.#fields.has(this.#field) && bytes <= maxFieldBytes ? [] : undefined;
    this.#skip(bytes);
  }

  #skip(bytes: number): void {
    this.#remainingBytes = bytes;
    this.#expectedPart = 'bytes';
    if (bytes === 0) this.#takeBytes(emptyBytes);
  }

  #takeBytes(bytes: Buffer): void {
    this.#remainingBytes -= bytes.length;
    this.#bufferedChunks?.push(Buffer.from(bytes));
    if (this.#remainingBytes > 0) return;
    if (this.#bufferedChunks !== undefined)
      this.#fieldTexts.set(this.#field, Buffer.concat(this.#bufferedChunks).toString());
    this.#bufferedChunks = undefined;
    this.#expectedPart = 'tag';
  }
}

const maxFieldBytes = 1_024;
const emptyBytes = Buffer.alloc(0);
