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
  let slots = 0;
  // Not recursive: an object of 3 MB may be a million levels deep.
  const left: unknown[] = [value];
  const take = (field: unknown): void => {
    slots++;
    // A text is not put aside: a list may have a hundred thousand.
    if (typeof field === 'string') bytes += textBytes + textLengthBytes(field);
    else if (typeof field === 'object') left.push(field);
  };
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === 'string') bytes += textBytes + textLengthBytes(next);
    else if (typeof next === 'object' && next !== null) {
      slots = 0;
      if (Array.isArray(next)) for (const field of next) take(field);
      // Of a map with 70,000 entries Object.values takes three times as long.
      else for (const key in next) take((next as Readonly<Record<string, unknown>>)[key]);
      bytes += containerBytes + slotBytes * slots;
    }
  }
  return bytes;
}

/** One character beyond Latin-1 makes V8 take two bytes for each. */
function textLengthBytes(text: string): number {
  return text.length * (text.length > 64 && /[\u0100-\uffff]/.test(text) ? 2 : 1);
}
