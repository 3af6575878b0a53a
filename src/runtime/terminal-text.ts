/**
 * Text of somebody else's for a terminal: what would move its cursor, colour it, name its window or write into its clipboard is left
 * out. Runs in a browser.
 */

/** In one line. */
export function terminalLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it is about.
  return withoutColours(text).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}

/** With the lines that it has. */
export function terminalText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it is about.
  return withoutColours(text).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]+/g, ' ');
}

function withoutColours(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it is about.
  return text.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, '');
}
