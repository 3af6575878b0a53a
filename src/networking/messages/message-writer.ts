/**
 * Encodes messages from the last byte to the first, so that a field's length is known when it is written. The result equals that of protobuf-es with
 * sorted map keys. protobuf-es is several times slower for types with sixty fields, but still encodes rare values and reports their errors.
 */
import { type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';

const stringKind = 0;
const boolKind = 1;
const uint32Kind = 2;
const int32Kind = 3;
const int64Kind = 4;
const doubleKind = 5;
const bytesKind = 6;
const messageKind = 7;
const wrapperKind = 8;
/** A google.protobuf.Struct, represented as JSON. */
const jsonKind = 9;
const otherKind = 10;

const kinds: Readonly<Partial<Record<ScalarType, number>>> = {
  [ScalarType.STRING]: stringKind,
  [ScalarType.BOOL]: boolKind,
  [ScalarType.UINT32]: uint32Kind,
  [ScalarType.INT32]: int32Kind,
  [ScalarType.INT64]: int64Kind,
  [ScalarType.UINT64]: int64Kind,
  [ScalarType.DOUBLE]: doubleKind,
  [ScalarType.BYTES]: bytesKind,
};

const zeros: readonly unknown[] = ['', false, 0, 0, 0n];

interface Field {
  readonly name: string;
  readonly oneof: string | undefined;
  readonly shape: 'one' | 'list' | 'packed' | 'map';
  readonly kind: number;
  readonly tag: number;
  /** Value that is not encoded; `undefined` if every present value is encoded. */
  readonly zeroValue: unknown;
  /** Whether only own properties of the message count as set. */
  readonly hasPresence: boolean;
  readonly schema: DescMessage | undefined;
}

interface Table {
  readonly typeName: string;
  /** In descending order of field numbers. */
  readonly fields: readonly Field[];
}

type Values = Record<string, unknown>;

/** Thrown for values that protobuf-es must encode. */
const unsupportedValue = new Error('a message is not written in the usual way');

/** Returns `undefined` if protobuf-es must encode the message. */
export function encodeBackwards(schema: DescMessage, source: Message): Uint8Array | undefined {
  writer.reset();
  try {
    writer.writeMessage(tableOf(schema), source);
  } catch (error) {
    if (error === unsupportedValue) return undefined;
    throw error;
  }
  return writer.copy();
}

const tables = new WeakMap<DescMessage, Table>();

function tableOf(schema: DescMessage): Table {
  let table = tables.get(schema);
  if (table === undefined) {
    const fields = schema.fields.map(fieldOf).sort((a, b) => b.tag - a.tag);
    table = { typeName: schema.typeName, fields };
    tables.set(schema, table);
  }
  return table;
}

const structType = 'google.protobuf.Struct';
/** `LEGACY_REQUIRED` and `IMPLICIT` of google.protobuf.FeatureSet.FieldPresence. */
const [implicitPresence, requiredPresence] = [2, 3];
const [varintType, fixedType, delimitedType] = [0, 1, 2];

function fieldOf(field: DescField): Field {
  const kind = field.presence === requiredPresence ? otherKind : kindOf(field);
  const isPacked = field.fieldKind === 'list' && field.packed;
  const shape =
    field.fieldKind === 'map' ? 'map' : field.fieldKind !== 'list' ? 'one' : isPacked ? ('packed' as const) : 'list';
  const wireType = shape === 'map' || shape === 'packed' ? delimitedType : wireTypeOf(kind);
  const oneof = field.fieldKind === 'list' || field.fieldKind === 'map' ? undefined : field.oneof?.localName;
  const isImplicit = oneof === undefined && field.presence === implicitPresence && shape === 'one';
  return {
    name: field.localName,
    oneof,
    shape,
    kind,
    tag: field.number * 8 + wireType,
    zeroValue: !isImplicit ? undefined : field.fieldKind === 'enum' ? field.enum.values[0]!.number : zeros[kind],
    hasPresence: !isImplicit && shape === 'one',
    schema: field.message,
  };
}

function kindOf(field: DescField): number {
  if (field.fieldKind === 'map' && field.mapKey !== ScalarType.STRING) return otherKind;
  if (field.message === undefined) return field.scalar === undefined ? int32Kind : (kinds[field.scalar] ?? otherKind);
  if (field.fieldKind !== 'map' && field.delimitedEncoding) return otherKind;
  if (field.message.typeName === structType && field.parent.typeName !== 'google.protobuf.Value') return jsonKind;
  const isWrapper = field.fieldKind === 'message' && field.oneof === undefined && isWrapperDesc(field.message);
  return isWrapper ? wrapperKind : messageKind;
}

function wireTypeOf(kind: number): number {
  if (kind === doubleKind) return fixedType;
  return kind === boolKind || kind === uint32Kind || kind === int32Kind || kind === int64Kind
    ? varintType
    : delimitedType;
}

/** Node's encoder is faster for longer strings. */
const maxCharacterwiseLength = 64;
const firstBytes = 64 * 1024;
/** Larger buffers are released after use. */
const maxKeptBytes = 1024 * 1024;
const tagOfStructFields = 10;

class BackwardWriter {
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  #position = firstBytes;

  reset(): void {
    if (this.#bytes.length > maxKeptBytes) this.#bytes = Buffer.allocUnsafeSlow(firstBytes);
    this.#position = this.#bytes.length;
  }

  copy(): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(this.#position));
  }

  writeMessage({ typeName, fields }: Table, source: Message): void {
    if (source.$typeName !== typeName) throw unsupportedValue;
    if (source.$unknown !== undefined) throw unsupportedValue;
    const values = source as unknown as Values;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i]!;
      const { name, oneof, shape } = field;
      if (oneof !== undefined) {
        const selectedField = values[oneof] as { readonly case?: string; readonly value: unknown };
        if (selectedField.case === name) this.#writeField(field, selectedField.value);
        continue;
      }
      const value = values[name];
      if (shape === 'one') {
        if (field.hasPresence ? value !== undefined && Object.hasOwn(values, name) : !isZero(field, value)) {
          this.#writeField(field, value);
        }
      } else if (shape === 'map') this.#writeMap(field, value as Values);
      else if ((value as readonly unknown[]).length > 0) this.#writeList(field, value as readonly unknown[]);
    }
  }

  #writeList(field: Field, items: readonly unknown[]): void {
    if (field.shape === 'list') {
      for (let i = items.length - 1; i >= 0; i--) this.#writeField(field, items[i]);
      return;
    }
    const end = this.#writtenBytes;
    for (let i = items.length - 1; i >= 0; i--) this.#writeValue(field, items[i]);
    this.#writeVarint(this.#writtenBytes - end);
    this.#writeVarint(field.tag);
  }

  #writeMap(field: Field, map: Values): void {
    const keys = orderedKeys(map);
    for (let i = keys.length - 1; i >= 0; i--) {
      const key = keys[i]!;
      const end = this.#writtenBytes;
      this.#writeValue(field, map[key]);
      this.#writeVarint(2 * 8 + wireTypeOf(field.kind));
      this.#writeText(key);
      this.#writeVarint(8 + delimitedType);
      this.#writeVarint(this.#writtenBytes - end);
      this.#writeVarint(field.tag);
    }
  }

  #writeField(field: Field, value: unknown): void {
    this.#writeValue(field, value);
    this.#writeVarint(field.tag);
  }

  #writeValue(field: Field, value: unknown): void {
    switch (field.kind) {
      case stringKind:
        this.#writeText(value);
        break;
      case boolKind:
        if (typeof value !== 'boolean') throw unsupportedValue;
        this.#writeVarint(value ? 1 : 0);
        break;
      case uint32Kind:
        this.#writeInteger(value, 0xffff_ffff);
        break;
      case int32Kind:
        this.#writeInteger(value, 0x7fff_ffff);
        break;
      case int64Kind:
        if (typeof value !== 'bigint' || value < 0n || value > Number.MAX_SAFE_INTEGER) throw unsupportedValue;
        this.#writeVarint(Number(value));
        break;
      case doubleKind:
        this.#writeDouble(value);
        break;
      case bytesKind:
        if (!(value instanceof Uint8Array)) throw unsupportedValue;
        this.#writeRawBytes(value);
        this.#writeVarint(value.length);
        break;
      case messageKind: {
        if (value === undefined) throw unsupportedValue;
        const end = this.#writtenBytes;
        this.writeMessage(tableOf(field.schema!), value as Message);
        this.#writeVarint(this.#writtenBytes - end);
        break;
      }
      case wrapperKind: {
        const end = this.#writtenBytes;
        const valueField = tableOf(field.schema!).fields[0]!;
        if (!isZero(valueField, value)) this.#writeField(valueField, value);
        this.#writeVarint(this.#writtenBytes - end);
        break;
      }
      case jsonKind:
        this.#writeStruct(value);
        break;
      default:
        throw unsupportedValue;
    }
  }

  #writeStruct(value: unknown): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Uint8Array)
      throw unsupportedValue;
    const end = this.#writtenBytes;
    const keys = orderedKeys(value as Values);
    for (let i = keys.length - 1; i >= 0; i--) {
      const key = keys[i]!;
      const endOfEntry = this.#writtenBytes;
      this.#writeJsonValue((value as Values)[key]);
      this.#writeVarint(2 * 8 + delimitedType);
      this.#writeText(key);
      this.#writeVarint(8 + delimitedType);
      this.#writeVarint(this.#writtenBytes - endOfEntry);
      this.#writeVarint(tagOfStructFields);
    }
    this.#writeVarint(this.#writtenBytes - end);
  }

  #writeJsonValue(value: unknown): void {
    const end = this.#writtenBytes;
    if (typeof value === 'string') {
      this.#writeText(value);
      this.#writeVarint(3 * 8 + delimitedType);
    } else if (typeof value === 'number') {
      this.#writeDouble(value);
      this.#writeVarint(2 * 8 + fixedType);
    } else if (typeof value === 'boolean') {
      this.#writeVarint(value ? 1 : 0);
      this.#writeVarint(4 * 8 + varintType);
    } else if (value === null) {
      this.#writeVarint(0);
      this.#writeVarint(8 + varintType);
    } else if (Array.isArray(value)) {
      const endOfList = this.#writtenBytes;
      for (let i = value.length - 1; i >= 0; i--) {
        this.#writeJsonValue(value[i]);
        this.#writeVarint(8 + delimitedType);
      }
      this.#writeVarint(this.#writtenBytes - endOfList);
      this.#writeVarint(6 * 8 + delimitedType);
    } else {
      this.#writeStruct(value);
      this.#writeVarint(5 * 8 + delimitedType);
    }
    this.#writeVarint(this.#writtenBytes - end);
  }

  get #writtenBytes(): number {
    return this.#bytes.length - this.#position;
  }

  #writeInteger(value: unknown, max: number): void {
    if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > max) throw unsupportedValue;
    this.#writeVarint(value as number);
  }

  #writeDouble(value: unknown): void {
    if (typeof value !== 'number') throw unsupportedValue;
    this.#reserveBytes(8);
    this.#position -= 8;
    this.#bytes.writeDoubleLE(value, this.#position);
  }

  #writeText(value: unknown): void {
    if (typeof value !== 'string') throw unsupportedValue;
    const { length } = value;
    if (length <= maxCharacterwiseLength && this.#asciiText(value)) this.#writeVarint(length);
    else {
      const size = Buffer.byteLength(value);
      this.#reserveBytes(size);
      this.#position -= size;
      this.#bytes.write(value, this.#position, size);
      this.#writeVarint(size);
    }
  }

  /** @returns `false`, without writing anything, if a character takes more than one byte */
  #asciiText(value: string): boolean {
    this.#reserveBytes(value.length);
    let offset = this.#position;
    for (let i = value.length - 1; i >= 0; i--) {
      const code = value.charCodeAt(i);
      if (code > 127) return false;
      this.#bytes[--offset] = code;
    }
    this.#position = offset;
    return true;
  }

  #writeRawBytes(value: Uint8Array): void {
    this.#reserveBytes(value.length);
    this.#position -= value.length;
    this.#bytes.set(value, this.#position);
  }

  #writeVarint(value: number): void {
    this.#reserveBytes(10);
    if (value < 128) {
      this.#bytes[--this.#position] = value;
      return;
    }
    let length = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
    this.#position -= length;
    let offset = this.#position;
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[offset++] = (rest % 128) | 128;
    this.#bytes[offset] = rest;
  }

  #reserveBytes(size: number): void {
    if (this.#position >= size) return;
    const { length } = this.#bytes;
    const largerBuffer = Buffer.allocUnsafeSlow(Math.max(2 * length, this.#writtenBytes + size));
    const start = largerBuffer.length - this.#writtenBytes;
    largerBuffer.set(this.#bytes.subarray(this.#position), start);
    this.#bytes = largerBuffer;
    this.#position = start;
  }
}

const writer = new BackwardWriter();

function isZero({ zeroValue, kind }: Field, value: unknown): boolean {
  if (kind === bytesKind) return value instanceof Uint8Array && value.length === 0;
  return kind === doubleKind || kind === otherKind ? Object.is(value, 0) : value === zeroValue;
}

function orderedKeys(map: Values): readonly string[] {
  const keys = Object.keys(map);
  if (areKeysSorted(keys)) return keys;
  // JavaScript puts integer keys first, so if the first key is no integer, none is.
  if (!/^\d/.test(keys[0]!)) return keys.sort();
  return Object.keys(Object.fromEntries(keys.sort().map((key) => [key, true])));
}

/** Returns `false` for integer keys, which JavaScript orders numerically. */
function areKeysSorted(keys: readonly string[]): boolean {
  if (keys.length < 2) return true;
  if (/^\d/.test(keys[0]!)) return false;
  for (let i = 1; i < keys.length; i++) if (keys[i - 1]! > keys[i]!) return false;
  return true;
}
