import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** Maximum stored bytes of texts that are only compared or shown. */
export const maxTextBytes = { typeUrl: 256, nonce: 256, version: 256, rejection: 2_048 } as const;

export const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Copies, because a substring keeps the complete text in memory. */
export function decodePrefix(bytes: Uint8Array, maxBytes: number): string {
  return utf8.decode(bytes.length <= maxBytes ? bytes : bytes.subarray(0, maxBytes));
}

/** @param onField reads a length-delimited field and returns true, or leaves it unread */
export function readFields(
  bytes: Uint8Array,
  onField: (field: number, reader: BinaryReader, start: number) => boolean,
): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited || !onField(field, reader, start)) reader.skip(wireType, field);
  }
}
