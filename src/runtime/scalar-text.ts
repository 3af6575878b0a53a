/**
 * The text of a string, number or boolean from untrusted input; empty for any other value. `String` would call an
 * object's `toString`, which JSON can replace with a value that is no function.
 */
export function scalarText(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** The number that a value is or contains as text; NaN for any other value, and for an empty text. */
export function scalarNumber(value: unknown): number {
  return Number(scalarText(value) || Number.NaN);
}
