/** Translates between Envoy's RE2 (C++, over bytes) and RE2JS (port of Go's RE2, over code points). */
import * as E from 'fp-ts/lib/Either.js';

/** Returns the UTF-8 bytes, one character per byte, because Envoy matches bytes. */
export function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function textOf(byteString: string): string {
  return Buffer.from(byteString, 'latin1').toString('utf8');
}

/** Properties that RE2JS supports but Envoy 1.40's RE2 does not: RE2JS's own categories, and scripts since Unicode 16. */
const unknownProperties: ReadonlySet<string> = new Set([
  ...['Cn', 'LC', 'ASCII_Hex_Digit', 'Alphabetic', 'Dash', 'Emoji', 'Emoji_Component', 'Emoji_Modifier'],
  ...['Emoji_Modifier_Base', 'Emoji_Presentation', 'Extended_Pictographic', 'Hex_Digit', 'Lowercase', 'Math'],
  ...['Quotation_Mark', 'Terminal_Punctuation', 'Uppercase', 'White_Space', 'Unknown'],
  ...['Beria_Erfe', 'Garay', 'Gurung_Khema', 'Kirat_Rai', 'Ol_Onal', 'Sidetic', 'Sunuwar', 'Tai_Yo', 'Todhri'],
  ...['Tolong_Siki', 'Tulu_Tigalari'],
]);

/** A piece of an expression with its RE2JS form. A left value is the reason why Envoy rejects the piece. */
type TranslatedPiece = readonly [piece: string, translated: E.Either<string, string>];

const quotedSequence = /\\Q.*?(?:\\E|$)/sy;
const hexadecimal = /\\x\{([0-9a-fA-F]+)\}/y;
const octal = /\\[4-7][0-7]{2}/y;
const property = /\\[pP]\{\^?(\w+)\}/y;
const escape = /\\./sy;
const groupName = /\(\?P?<\w+>/y;
/** RE2 treats a repeat count of ten digits as literal braces. */
const hugeRepetition = /\{(?:[1-9]\d{9,}(?:,\d*)?|\d+,[1-9]\d{9,})\}/y;
const classStart = /\[\^?\]?/y;
const namedClass = /\[:\^?\w+:\]/y;

/** Left: why Envoy rejects an expression that RE2JS would accept. */
export function translateToRe2js(byteString: string): E.Either<string, string> {
  let translatedPattern = '';
  let inClass = false;
  for (let byteIndex = 0; byteIndex < byteString.length; ) {
    const [matchedText, output] = readToken(byteString, byteIndex, inClass);
    if (E.isLeft(output)) return output;
    translatedPattern += output.right;
    byteIndex += matchedText.length;
    if (!inClass) inClass = matchedText.startsWith('[');
    else if (matchedText === ']') inClass = false;
  }
  return E.right(translatedPattern);
}

function readToken(byteString: string, byteIndex: number, inClass: boolean): TranslatedPiece {
  const matchAt = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = byteIndex;
    return pattern.exec(byteString);
  };
  const keepToken = (match: RegExpExecArray): TranslatedPiece => [match[0], E.right(match[0])];
  if (byteString[byteIndex] === '\\') return readEscape(matchAt, inClass);
  const classMatch = inClass ? matchAt(namedClass) : matchAt(classStart);
  if (classMatch) return keepToken(classMatch);
  if (!inClass) {
    // Group names have no effect, and RE2 accepts duplicates.
    const name = matchAt(groupName);
    if (name) return [name[0], E.right('(')];
    const repeatMatch = matchAt(hugeRepetition);
    if (repeatMatch) return [repeatMatch[0], E.right(`\\${repeatMatch[0]}`)];
  }
  return [byteString[byteIndex]!, E.right(byteString[byteIndex]!)];
}

function readEscape(matchAt: (pattern: RegExp) => RegExpExecArray | null, inClass: boolean): TranslatedPiece {
  const quote = inClass ? null : matchAt(quotedSequence);
  if (quote) return [quote[0], E.right(quote[0])];
  const code = matchAt(hexadecimal) ?? matchAt(octal);
  if (code) {
    const value = code[1] === undefined ? Number.parseInt(code[0].slice(1), 8) : Number.parseInt(code[1], 16);
    return [code[0], value > 0xff ? E.left(`${code[0]} is not a byte; Envoy matches bytes`) : E.right(code[0])];
  }
  const propertyMatch = matchAt(property);
  if (propertyMatch) {
    const isUnknown = unknownProperties.has(propertyMatch[1]!);
    return [
      propertyMatch[0],
      isUnknown ? E.left(`RE2 has no character class ${propertyMatch[0]}`) : E.right(propertyMatch[0]),
    ];
  }
  const [matchedText] = matchAt(escape) ?? ['\\'];
  return [matchedText, E.right(matchedText === '\\C' && !inClass ? '(?s:.)' : matchedText)];
}
