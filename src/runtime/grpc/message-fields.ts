/**
 * Reads length-delimited fields of protobuf messages without generated types, whose descriptors the agent does not need
 * otherwise.
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

export interface MessageField {
  readonly field: number;
  readonly bytes: Uint8Array;
}

/** Throws if the bytes are no message. */
export function* fieldsOf(message: Uint8Array): Generator<MessageField> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited) yield { field, bytes: reader.bytes() };
    else reader.skip(wireType, field);
  }
}

/** Throws if the bytes are no message. */
export function findField(message: Uint8Array, fieldNumber: number): Uint8Array | undefined {
  for (const { field, bytes } of fieldsOf(message)) if (field === fieldNumber) return bytes;
  return undefined;
}

/** Of several fields with the number, the last one applies, as in any protobuf message. Throws if the bytes are no message. */
export function textIn(message: Uint8Array, fieldNumber: number): string | undefined {
  let text: string | undefined;
  for (const { field, bytes } of fieldsOf(message)) if (field === fieldNumber) text = textOf(bytes);
  return text;
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
