/** Booleans as Go's `strconv.ParseBool` reads them: in annotations and labels, where everything is a text. */

const truths: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const falsehoods: ReadonlySet<string> = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/** Undefined when the text is no boolean: whoever reads a restriction from it must refuse it then. */
export function booleanOf(text: string): boolean | undefined {
  if (truths.has(text)) return true;
  return falsehoods.has(text) ? false : undefined;
}
