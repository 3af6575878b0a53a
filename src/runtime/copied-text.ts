/** A copy of the text: V8 keeps a whole string in memory for any substring of it. */
export function copiedText(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}
