import type { Token } from './lexer.ts';
import { TemplateError } from './template-error.ts';

const minInt = -(2n ** 63n);
const maxInt = 2n ** 63n - 1n;

/** @throws TemplateError */
export function literalOf(token: Token): bigint | number | string | boolean {
  const { kind, text } = token;
  switch (kind) {
    case 'bool':
      return text === 'true';
    case 'rawString':
      return text.slice(1, -1).replaceAll('\r', '');
    case 'string':
      return unescape(token, '"');
    case 'char': {
      const content = unescape(token, "'");
      if ([...content].length !== 1) throw new TemplateError(token, `${text} must be one character`);
      return BigInt(content.codePointAt(0)!);
    }
    default:
      return numberOf(token);
  }
}

function numberOf(token: Token): bigint | number {
  const { text } = token;
  const isNegative = text.startsWith('-');
  const digits = text.replace(/^[+-]/, '');
  const hasValidSeparators = /^(?:0[xXbBoO]_?|)[\da-fA-F]+(?:_[\da-fA-F]+)*$/.test(digits) || !digits.includes('_');
  const plainDigits = digits.replaceAll('_', '');
  if (/^(?:0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/.test(plainDigits) && hasValidSeparators) {
    const octal = /^0[0-7]+$/.test(plainDigits) ? `0o${plainDigits.slice(1)}` : plainDigits;
    const magnitude = BigInt(octal);
    const value = isNegative ? -magnitude : magnitude;
    if (value < minInt || value > maxInt) throw new TemplateError(token, `${text} is too large for an int`);
    return value;
  }
  if (/^(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(plainDigits) && /[.eE]/.test(plainDigits) && hasValidSeparators) {
    const value = Number(plainDigits);
    if (!Number.isFinite(value)) throw new TemplateError(token, `${text} is too large for a float64`);
    return isNegative ? -value : value;
  }
  throw new TemplateError(token, `${text} is not a number`);
}

const simpleEscapes: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', '\\': '\\' },
};
const escape = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3})|(["'abfnrtv\\])|(.?))/gs;

/** Consecutive `\x` and octal escapes are decoded together as UTF-8. */
function unescape(token: Token, quote: '"' | "'"): string {
  const bytes: Buffer[] = [];
  const content = token.text.slice(1, -1);
  let copiedEnd = 0;
  for (const match of content.matchAll(escape)) {
    bytes.push(Buffer.from(content.slice(copiedEnd, match.index)));
    bytes.push(decodeEscape(token, quote, match));
    copiedEnd = match.index + match[0].length;
  }
  return Buffer.concat([...bytes, Buffer.from(content.slice(copiedEnd))]).toString();
}

function decodeEscape(token: Token, quote: string, match: RegExpMatchArray): Buffer {
  const [escape, byte, shortHex, longHex, octal, simple] = match;
  if (byte !== undefined || octal !== undefined) {
    const value = byte === undefined ? Number.parseInt(octal!, 8) : Number.parseInt(byte, 16);
    // In a character literal the value is a code point.
    if (value <= 255) return quote === "'" ? Buffer.from(String.fromCodePoint(value)) : Buffer.from([value]);
  }
  const code = shortHex ?? longHex;
  if (code !== undefined) {
    const point = Number.parseInt(code, 16);
    if (point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)) return Buffer.from(String.fromCodePoint(point));
  }
  if (simple === quote) return Buffer.from(quote);
  const simpleEscape = simple === undefined ? undefined : simpleEscapes[simple];
  if (simpleEscape === undefined)
    throw new TemplateError(token, `${token.text}: ${escape} is not a valid escape sequence`);
  return Buffer.from(simpleEscape);
}
