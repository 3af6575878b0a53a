import { isUtf8 } from 'node:buffer';
import { visibleText } from './visible-text.ts';

const notPlainAscii = /[^\t\n\x20-\x7e]/;
const beyondAscii = /[\x80-\xff]/g;

/** Escapes lines of another program. In a line that is not UTF-8 each byte beyond ASCII becomes `\x9b`. */
export function visibleBytes(lines: Buffer): Buffer {
  const bytes = lines.toString('latin1');
  if (!notPlainAscii.test(bytes)) return lines;
  if (isUtf8(lines)) return Buffer.from(visibleText(lines.toString()));
  const readable = bytes.split('\n').map((line) => {
    const raw = Buffer.from(line, 'latin1');
    return visibleText(isUtf8(raw) ? raw.toString() : line.replaceAll(beyondAscii, escapedByte));
  });
  return Buffer.from(readable.join('\n'));
}

function escapedByte(byte: string): string {
  return `\\x${byte.charCodeAt(0).toString(16)}`;
}
