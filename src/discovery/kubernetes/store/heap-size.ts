/** Estimates the heap size of a plain value, which V8 does not report. */

const containerBytes = 40;
const slotBytes = 8;
const textBytes = 24;

/**
 * Field names are not included, because V8 stores each only once.
 *
 * @param value without cycles, and not deeper than JSON.parse accepts
 */
export function heapBytesOf(value: unknown): number {
  let bytes = 0;
  let slots = 0;
  // Not recursive, because an object of 3 MB can have a million levels.
  const unvisitedValues: unknown[] = [value];
  const addField = (field: unknown): void => {
    slots++;
    // Strings are not queued, because a list can have a hundred thousand.
    if (typeof field === 'string') bytes += textBytes + textLengthBytes(field);
    else if (typeof field === 'object') unvisitedValues.push(field);
  };
  while (unvisitedValues.length > 0) {
    const next = unvisitedValues.pop();
    if (typeof next === 'string') bytes += textBytes + textLengthBytes(next);
    else if (typeof next === 'object' && next !== null) {
      slots = 0;
      if (Array.isArray(next)) for (const field of next) addField(field);
      // Three times as fast as Object.values for a map with 70,000 entries.
      else for (const key in next) addField((next as Readonly<Record<string, unknown>>)[key]);
      bytes += containerBytes + slotBytes * slots;
    }
  }
  return bytes;
}

/** V8 uses two bytes per character if a string contains any character beyond Latin-1. */
function textLengthBytes(text: string): number {
  return text.length * (text.length > 64 && /[\u0100-\uffff]/.test(text) ? 2 : 1);
}
