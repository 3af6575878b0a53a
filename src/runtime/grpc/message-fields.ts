/**
 * Fields of protobuf messages that the agent reads without their types: the generated ones of Envoy's API would bring in
 * descriptors that it has no other use for. All that is read of them is length-delimited.
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

export interface MessageField {
  readonly field: number;
  readonly bytes: Uint8Array;
}

/** The length-delimited fields of a message, in their order. Throws when the bytes are no message. */
export function* fieldsOf(message: Uint8Array): Generator<MessageField> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited) yield { field, bytes: reader.bytes() };
    else reader.skip(wireType, field);
  }
}

/** The first field of this number. Throws when the bytes are no message. */
export function fieldIn(message: Uint8Array, wanted: number): Uint8Array | undefined {
  for (const { field, bytes } of fieldsOf(message)) if (field === wanted) return bytes;
  return undefined;
}

/** The text of a field: the last one of its number counts, as in any protobuf message. Throws when the bytes are no message. */
export function textIn(message: Uint8Array, wanted: number): string | undefined {
  let text: string | undefined;
  for (const { field, bytes } of fieldsOf(message)) if (field === wanted) text = textOf(bytes);
  return text;
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
