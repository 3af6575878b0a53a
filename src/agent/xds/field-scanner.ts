import { WireType } from '@bufbuild/protobuf/wire';

/**
 * Reads short fields of a message that comes in pieces, without keeping it: a response of many megabytes has its type and nonce
 * after all of its resources.
 */
export class FieldScanner {
  readonly #wanted: ReadonlySet<number>;
  readonly #found = new Map<number, string>();
  /** The field that is being read, and what of it: its tag, its length or a number, or so many bytes. */
  #field = 0;
  #part: 'tag' | 'length' | 'number' | 'bytes' = 'tag';
  #varint = 0;
  #shift = 1;
  #rest = 0;
  #kept: Buffer[] | undefined;
  #isLost = false;

  constructor(wanted: ReadonlySet<number>) {
    this.#wanted = wanted;
  }

  /** The wanted fields that were there; of one that came several times the last. Too long ones, and all after bytes that are no message, are none. */
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
    // No tag and no length is longer; a number that is passed over may be.
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
    this.#kept = this.#wanted.has(this.#field) && bytes <= longestField ? [] : undefined;
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

const longestField = 1_024;
const none = Buffer.alloc(0);
