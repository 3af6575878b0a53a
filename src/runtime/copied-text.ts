/** V8 keeps an entire string in memory for any substring of it, but not for a copy. */
export function copiedText(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}
