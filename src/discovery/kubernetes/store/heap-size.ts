/** Estimates the heap size of a plain value. V8 does not report it, and the JSON of many small fields has a tenth of their heap size. */

/** An object or array with its elements' store. */
const containerBytes = 40;
const slotBytes = 8;
/** A string header, rounded up. */
const textBytes = 24;

/**
 * Heap bytes of a value that was parsed from JSON. Field names are not counted, because V8 keeps each once.
 *
 * @param value without cycles, and not deeper than JSON.parse accepts
 */
export function heapBytesOf(value: unknown): number {
  let bytes = 0;
  let slots = 0;
  // Not recursive: an object of 3 MB may have a million levels.
  const left: unknown[] = [value];
  const take = (field: unknown): void => {
    slots++;
    // Strings are counted at once instead of queued: a list may have a hundred thousand.
    if (typeof field === 'string') bytes += textBytes + textLengthBytes(field);
    else if (typeof field === 'object') left.push(field);
  };
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === 'string') bytes += textBytes + textLengthBytes(next);
    else if (typeof next === 'object' && next !== null) {
      slots = 0;
      if (Array.isArray(next)) for (const field of next) take(field);
      // For a map with 70,000 entries Object.values takes three times as long.
      else for (const key in next) take((next as Readonly<Record<string, unknown>>)[key]);
      bytes += containerBytes + slotBytes * slots;
    }
  }
  return bytes;
}

/** With one character beyond Latin-1, V8 uses two bytes for each character. */
function textLengthBytes(text: string): number {
  return text.length * (text.length > 64 && /[\u0100-\uffff]/.test(text) ? 2 : 1);
}
