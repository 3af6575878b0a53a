/** Parses booleans like Go's `strconv.ParseBool`, for annotations and labels, whose values are strings. */

const truths: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const falsehoods: ReadonlySet<string> = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/** Returns `undefined` for other texts; a restriction must then be rejected. */
export function booleanOf(text: string): boolean | undefined {
  if (truths.has(text)) return true;
  return falsehoods.has(text) ? false : undefined;
}
