/** Files of the Kubernetes downward API contain lines of `key="value"` with Go quoting. */
import { readFileSync } from 'node:fs';
import { ChartpilotError, isSystemError } from '../../runtime/errors.ts';

export function readDownwardFile(path: string): Record<string, string> {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return {};
    throw new ChartpilotError('FILE_UNREADABLE', path, { cause: error });
  }
  return parseDownwardFile(content, path);
}

export function parseDownwardFile(content: string, path: string): Record<string, string> {
  const entries: [string, string][] = [];
  for (const [index, line] of content.split('\n').entries()) {
    const separator = line.indexOf('=');
    if (separator < 0) continue;
    const value = unquote(line.slice(separator + 1));
    if (value === undefined) {
      throw new ChartpilotError('FILE_UNREADABLE', `${path}:${index + 1}: value must be a quoted string`, {
        fields: { path, line: index + 1 },
        hint: 'Each line must read key="value", as the Kubernetes downward API writes it.',
      });
    }
    entries.push([line.slice(0, separator), value]);
  }
  return Object.fromEntries(entries);
}

const simpleEscapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
};

function unquote(literal: string): string | undefined {
  const quotedText = /^"((?:[^"\\]|\\.)*)"$/s.exec(literal)?.[1];
  if (quotedText === undefined) return undefined;
  let isMalformed = false;
  // \xNN and octal escapes are UTF-8 bytes, so consecutive ones are decoded together.
  const text = quotedText.replace(
    /((?:\\x[0-9a-fA-F]{2}|\\[0-7]{3})+)|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)/g,
    (_, bytes?: string, shortHex?: string, longHex?: string, escapeCharacter?: string) => {
      if (bytes !== undefined) return decodeBytes(bytes);
      if (shortHex !== undefined || longHex !== undefined) {
        const codePoint = Number.parseInt(shortHex ?? longHex!, 16);
        const isCharacter = codePoint <= 0x10ffff && (codePoint < 0xd800 || codePoint > 0xdfff);
        isMalformed ||= !isCharacter;
        return isCharacter ? String.fromCodePoint(codePoint) : '';
      }
      const character = simpleEscapes[escapeCharacter!];
      isMalformed ||= character === undefined;
      return character ?? '';
    },
  );
  return isMalformed ? undefined : text;
}

function decodeBytes(escapes: string): string {
  const bytes = [...escapes.matchAll(/\\x(..)|\\(...)/g)].map(([, hex, octal]) =>
    hex === undefined ? Number.parseInt(octal!, 8) : Number.parseInt(hex, 16),
  );
  return Buffer.from(bytes).toString('utf8');
}
