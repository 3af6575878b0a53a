/** Splits DER (X.690) into elements without parsing their content, for structures that are too long for a schema. */

export interface DerElement {
  readonly tag: number;
  readonly raw: Uint8Array;
  readonly content: Uint8Array;
}

const maxLengthBytes = 4;

/** @throws RangeError if the bytes do not start with a complete element */
export function firstDerElement(bytes: Uint8Array): DerElement {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined) throw new RangeError('DER element is truncated');
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (first === 0x80 || lengthBytes > maxLengthBytes) throw new RangeError('invalid DER length');
  let length = lengthBytes === 0 ? first : 0;
  for (const byte of bytes.subarray(2, 2 + lengthBytes)) length = length * 256 + byte;
  const endOffset = 2 + lengthBytes + length;
  if (endOffset > bytes.length) throw new RangeError('DER element is truncated');
  return { tag, raw: bytes.subarray(0, endOffset), content: bytes.subarray(2 + lengthBytes, endOffset) };
}

/** @throws RangeError if the bytes are not a sequence of complete elements */
export function derElements(bytes: Uint8Array): readonly DerElement[] {
  const elements: DerElement[] = [];
  for (
    let remainingBytes = bytes;
    remainingBytes.length > 0;
    remainingBytes = remainingBytes.subarray(elements.at(-1)!.raw.length)
  ) {
    elements.push(firstDerElement(remainingBytes));
  }
  return elements;
}
