/**
 * Reads fields of a protobuf message in place. Entries of access logs come by the thousand per second: the generated classes
 * take several times as long (README.md), and most fields of an entry are not needed.
 */
import { WireType } from '@bufbuild/protobuf/wire';

/** Bytes that are no protobuf message. */
export class WireError extends Error {}

export class WireCursor {
  readonly #bytes: Buffer;
  #at: number;
  /** End of the message that is being read. */
  #end: number;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#at = 0;
    this.#end = bytes.length;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** Field number times 8, plus its wire type. */
  tag(): number {
    return this.varint();
  }

  /** Precise up to 2^53. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      if (this.#at >= this.#end) throw new WireError('field exceeds its message');
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
      if (scale > 2 ** 63) throw new WireError('number exceeds 64 bits');
    }
  }

  text(): string {
    const end = this.#length() + this.#at;
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end;
    return text;
  }

  /** Reads the fields of a message in this one: `read` is called until it is at the end. */
  within(read: (cursor: this) => void): void {
    const outer = this.#end;
    const end = this.#length() + this.#at;
    this.#end = end;
    while (this.#at < end) read(this);
    this.#end = outer;
  }

  /** @param tag of the field, see {@link tag} */
  skip(tag: number): void {
    switch (tag & 7) {
      case WireType.Varint:
        this.varint();
        return;
      case WireType.Bit64:
        this.#leap(8);
        return;
      case WireType.LengthDelimited:
        this.#leap(this.#length());
        return;
      case WireType.Bit32:
        this.#leap(4);
        return;
      default:
        throw new WireError('unknown wire type');
    }
  }

  /** Of a text or message: it begins where the cursor is afterwards. */
  #length(): number {
    const length = this.varint();
    if (length > this.#end - this.#at) throw new WireError('field exceeds its message');
    return length;
  }

  #leap(bytes: number): void {
    if (bytes > this.#end - this.#at) throw new WireError('field exceeds its message');
    this.#at += bytes;
  }
}
