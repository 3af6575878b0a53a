/**
 * The text of what a stranger sent, where it is one, a number or a boolean; of anything else none. `String` asks an object for its
 * `toString`, which may be anything in JSON, and throws.
 */
export function scalarText(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** The number that it is, or says; NaN where it is none, and where there is nothing. */
export function scalarNumber(value: unknown): number {
  return Number(scalarText(value) || Number.NaN);
}
