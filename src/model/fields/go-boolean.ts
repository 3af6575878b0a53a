/** Parses booleans like Go's `strconv.ParseBool`, for annotations and labels, whose values are strings. */

const trueTexts: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const falseTexts: ReadonlySet<string> = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/** Returns `undefined` for other texts; a restriction must then be rejected. */
export function booleanOf(text: string): boolean | undefined {
  if (trueTexts.has(text)) return true;
  return falseTexts.has(text) ? false : undefined;
}
