/** Protobuf's wire format by hand: the fields of a message without a schema, and without an object for each. */

const lengthDelimited = 2;

/** A cursor over the fields of one message. */
export class Fields {
  readonly bytes: Buffer;
  /** Number of the field that the cursor is at. */
  field = 0;
  /** Where the record of this field begins, with its tag. */
  recordStart = 0;
  /** Where its content lies, for a string, bytes or a message. */
  start = 0;
  /** Behind the field. */
  end = 0;
  /** The value of a field that is a number. Exact up to 2^53. */
  number = 0;
  readonly #limit: number;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.end = start;
    this.#limit = end;
  }

  /**
   * Goes on to the next field.
   *
   * @returns false when there is none
   * @throws RangeError when the bytes are no protobuf message
   */
  next(): boolean {
    if (this.end >= this.#limit) return false;
    this.recordStart = this.end;
    const tag = this.#varint();
    this.field = tag >>> 3;
    const wireType = tag & 7;
    if (wireType === lengthDelimited) {
      const length = this.#varint();
      this.start = this.end;
      this.end += length;
    } else if (wireType === 0) this.number = this.#varint();
    else if (wireType === 1) this.end += 8;
    else if (wireType === 5) this.end += 4;
    else throw new RangeError(`wire type ${wireType} at byte ${this.recordStart}`);
    if (this.end > this.#limit) throw new RangeError(`field ${this.field} ends behind its message`);
    return true;
  }

  /** The content of the field that the cursor is at, as a text. */
  text(): string {
    return this.bytes.toString('utf8', this.start, this.end);
  }

  /** The fields of the message in the field that the cursor is at. */
  inner(): Fields {
    return new Fields(this.bytes, this.start, this.end);
  }

  #varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.end++];
      if (byte === undefined) throw new RangeError('a number ends behind its message');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }
}

/** The content of the first field with this number. */
export function textOf(fields: Fields, field: number): string {
  while (fields.next()) if (fields.field === field) return fields.text();
  return '';
}

/** A field of text, with its tag; nothing for an empty text, as proto3 has it. */
export function textField(field: number, text: string): Buffer {
  return text === '' ? Buffer.alloc(0) : bytesField(field, Buffer.from(text));
}

/** A field of bytes or of a message, with its tag. Field numbers up to 15. */
export function bytesField(field: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | lengthDelimited, ...varint(content.length)]), content]);
}

/** A field of a whole number, with its tag. */
export const numberField = (field: number, value: number): Buffer => Buffer.from([field << 3, ...varint(value)]);

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}
