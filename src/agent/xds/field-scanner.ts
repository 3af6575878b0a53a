import { WireType } from '@bufbuild/protobuf/wire';

/** Reads short fields of a message from chunks without buffering it, because a response of many megabytes has type and nonce after its resources. */
export class FieldScanner {
  readonly #fields: ReadonlySet<number>;
  readonly #found = new Map<number, string>();
  /** Of the current field: its tag, its length or number, or its remaining bytes. */
  #field = 0;
  #part: 'tag' | 'length' | 'number' | 'bytes' = 'tag';
  #varint = 0;
  #shift = 1;
  #rest = 0;
  #kept: Buffer[] | undefined;
  #isLost = false;

  constructor(fields: ReadonlySet<number>) {
    this.#fields = fields;
  }

  /** Found fields, with the last value of repeated ones. Excludes fields that are too long, and all after invalid bytes. */
  get found(): ReadonlyMap<number, string> {
    return this.#found;
  }

  push(piece: Buffer): void {
    let at = 0;
    while (at < piece.length && !this.#isLost) {
      if (this.#part === 'bytes') {
        const bytes = piece.subarray(at, at + this.#rest);
        this.#takeBytes(bytes);
        at += bytes.length;
      } else {
        this.#takeByte(piece[at]!);
        at++;
      }
    }
  }

  #takeByte(byte: number): void {
    this.#varint += (byte & 0x7f) * this.#shift;
    this.#shift *= 128;
    // Tags and lengths have at most five bytes; a skipped number may have more.
    if (byte >= 0x80) {
      this.#isLost = this.#part !== 'number' && this.#shift > 2 ** 35;
      return;
    }
    const value = this.#varint;
    this.#varint = 0;
    this.#shift = 1;
    if (this.#part === 'tag') this.#takeTag(value);
    else if (this.#part === 'length') this.#expect(value);
    else this.#part = 'tag';
  }

  #takeTag(tag: number): void {
    this.#field = Math.floor(tag / 8);
    const wireType = tag % 8;
    this.#kept = undefined;
    if (wireType === WireType.LengthDelimited) this.#part = 'length';
    else if (wireType === WireType.Varint) this.#part = 'number';
    else if (wireType === WireType.Bit64) this.#skip(8);
    else if (wireType === WireType.Bit32) this.#skip(4);
    else this.#isLost = true;
  }

  #expect(bytes: number): void {
    this.#kept = this.#fields.has(this.#field) && bytes <= maxFieldBytes ? [] : undefined;
    this.#skip(bytes);
  }

  #skip(bytes: number): void {
    this.#rest = bytes;
    this.#part = 'bytes';
    if (bytes === 0) this.#takeBytes(none);
  }

  #takeBytes(bytes: Buffer): void {
    this.#rest -= bytes.length;
    this.#kept?.push(Buffer.from(bytes));
    if (this.#rest > 0) return;
    if (this.#kept !== undefined) this.#found.set(this.#field, Buffer.concat(this.#kept).toString());
    this.#kept = undefined;
    this.#part = 'tag';
  }
}

const maxFieldBytes = 1_024;
const none = Buffer.alloc(0);
