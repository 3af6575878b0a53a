/** Writes the part of DER (X.690) that certificates need. Encoding by schema takes twenty times as long. */

export function encodeElement(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.of(tag), lengthOf(body.length), body]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes: number[] = [];
  for (let remainingLength = length; remainingLength > 0; remainingLength >>>= 8) bytes.unshift(remainingLength & 0xff);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}

export const encodeSequence = (...content: readonly Uint8Array[]): Buffer => encodeElement(0x30, ...content);
export const set = (...content: readonly Uint8Array[]): Buffer => encodeElement(0x31, ...content);
export const octetString = (content: Uint8Array): Buffer => encodeElement(0x04, content);
export const utf8String = (text: string): Buffer => encodeElement(0x0c, Buffer.from(text));
export const encodeBoolean = (value: boolean): Buffer => encodeElement(0x01, Buffer.of(value ? 0xff : 0));

export const bitString = (content: Uint8Array, unusedBits = 0): Buffer =>
  encodeElement(0x03, Buffer.of(unusedBits), content);

/** Encodes a positive integer from big-endian bytes. */
export function encodeInteger(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const magnitudeBytes = bytes.subarray(start);
  return encodeElement(
    0x02,
    magnitudeBytes[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), magnitudeBytes]) : magnitudeBytes,
  );
}

/** @param dottedText such as `1.2.840.10045.4.3.2` */
export function encodeObjectIdentifier(dottedText: string): Buffer {
  const [first, secondArc, ...otherArcs] = dottedText.split('.').map(Number);
  const bytes = [first! * 40 + secondArc!];
  for (const arc of otherArcs) {
    const groups = [arc & 0x7f];
    for (let highBits = arc >>> 7; highBits > 0; highBits >>>= 7) groups.unshift(0x80 | (highBits & 0x7f));
    bytes.push(...groups);
  }
  return encodeElement(0x06, Buffer.from(bytes));
}

/** Encodes integer seconds: UTCTime until 2049, GeneralizedTime from 2050 (RFC 5280 §4.1.2.5). */
export function encodeTime(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]/g, '').slice(0, 14);
  return date.getUTCFullYear() < 2050
    ? encodeElement(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : encodeElement(0x18, Buffer.from(`${digits}Z`));
}

/** @throws RangeError for non-ASCII characters */
export function encodeIa5String(text: string): Buffer {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) throw new RangeError('must be ASCII');
  return Buffer.from(text, 'latin1');
}

/** Criticality is encoded only if true (RFC 5280 §4.1). */
export function encodeExtension(identifier: Uint8Array, isCritical: boolean, value: Uint8Array): Buffer {
  return encodeSequence(identifier, ...(isCritical ? [encodeBoolean(true)] : []), octetString(value));
}

/** Explicit tag `[n]`. */
export const encodeExplicit = (number: number, content: Uint8Array): Buffer => encodeElement(0xa0 | number, content);
/** Implicit tag `[n]` of primitive content. */
export const encodeImplicit = (number: number, content: Uint8Array): Buffer => encodeElement(0x80 | number, content);
