/** How much of the heap a plain value takes, estimated: V8 does not say, and the JSON of many small fields is a tenth of what they take. */

/** An object or array, with its elements' store. */
const containerBytes = 40;
/** A slot of an object or array. */
const slotBytes = 8;
/** A string's header, rounded up. */
const textBytes = 24;

/**
 * Bytes of a value that was parsed from JSON. Field names are not counted: V8 has each once.
 *
 * @param value without cycles, and no deeper than JSON.parse reads
 */
export function heapBytesOf(value: unknown): number {
  let bytes = 0;
  // Not recursive: an object of 3 MB may be a million levels deep.
  const left: unknown[] = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === 'string') bytes += textBytes + textLengthBytes(next);
    else if (typeof next === 'object' && next !== null) {
      const fields = Array.isArray(next) ? next : Object.values(next);
      bytes += containerBytes + slotBytes * fields.length;
      for (const field of fields) if (typeof field === 'string' || typeof field === 'object') left.push(field);
    }
  }
  return bytes;
}

/** One character beyond Latin-1 makes V8 take two bytes for each. */
function textLengthBytes(text: string): number {
  return text.length * (text.length > 64 && /[\u0100-\uffff]/.test(text) ? 2 : 1);
}
