import { isUtf8 } from 'node:buffer';
import { visibleText } from './visible-text.ts';

const notPlainAscii = /[^\t\n\x20-\x7e]/;
const nonAsciiPattern = /[\x80-\xff]/g;

/** Escapes lines of another program. In a line that is not UTF-8 each byte beyond ASCII becomes `\x9b`. */
export function visibleBytes(lines: Buffer): Buffer {
  const bytes = lines.toString('latin1');
  if (!notPlainAscii.test(bytes)) return lines;
  if (isUtf8(lines)) return Buffer.from(visibleText(lines.toString()));
  const readableLines = bytes.split('\n').map((line) => {
    const rawLine = Buffer.from(line, 'latin1');
    return visibleText(isUtf8(rawLine) ? rawLine.toString() : line.replaceAll(nonAsciiPattern, escapedByte));
  });
  return Buffer.from(readableLines.join('\n'));
}

function escapedByte(byte: string): string {
  return `\\x${byte.charCodeAt(0).toString(16)}`;
}
