/** Reads encoded messages (protobuf wire format). */

const fixed64 = 1;
export const lengthDelimited = 2;
const fixed32 = 5;

export class FieldCursor {
  readonly #buffer: Buffer;
  position: number;

  constructor(buffer: Buffer, position: number) {
    this.#buffer = buffer;
    this.position = position;
  }

  /** Reads the low 32 bits of a varint, which suffice for tags, lengths and enums. */
  varint(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#buffer[this.position++] ?? 0;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }

  skip(wireType: number): void {
    if (wireType === fixed64) this.position += 8;
    else if (wireType === fixed32) this.position += 4;
    else this.varint();
  }
}
