/** Protobuf's wire format without schema and without an object for each field. */

const lengthDelimited = 2;

/** A cursor over the fields of a message. */
export class ProtobufFields {
  readonly bytes: Buffer;
  /** Number of the current field. */
  field = 0;
  /** Offset of the current field including its tag. */
  recordStart = 0;
  /** Offset of its content, for a string, bytes or a message. */
  start = 0;
  /** Offset after the field. */
  end = 0;
  /** Value of a numeric field, exact up to 2^53. */
  number = 0;
  readonly #limit: number;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.end = start;
    this.#limit = end;
  }

  /**
   * Moves to the next field.
   *
   * @returns false at the end
   * @throws RangeError for bytes that are not a protobuf message
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

  /** Content of the current field as text. */
  text(): string {
    return this.bytes.toString('utf8', this.start, this.end);
  }

  /** Fields of the message in the current field. */
  inner(): ProtobufFields {
    return new ProtobufFields(this.bytes, this.start, this.end);
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

/** Text of the first field with this number. */
export function textOf(fields: ProtobufFields, field: number): string {
  while (fields.next()) if (fields.field === field) return fields.text();
  return '';
}

/** A string field with its tag; empty for an empty text, as in proto3. */
export function textField(field: number, text: string): Buffer {
  return text === '' ? Buffer.alloc(0) : bytesField(field, Buffer.from(text));
}

/** A bytes or message field with its tag. Field numbers up to 15. */
export function bytesField(field: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | lengthDelimited, ...varint(content.length)]), content]);
}

/** An integer field with its tag. */
export const numberField = (field: number, value: number): Buffer => Buffer.from([field << 3, ...varint(value)]);

function varint(value: number): number[] {
  const bytes: number[] = [];
  let remainder = value;
  for (; remainder > 127; remainder = Math.floor(remainder / 128)) bytes.push((remainder % 128) | 128);
  return [...bytes, remainder];
}
