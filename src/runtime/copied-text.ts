/** The text in memory of its own: a part of a text keeps the whole, however short the part. */
export function copiedText(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}
