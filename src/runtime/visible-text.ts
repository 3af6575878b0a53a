/**
 * Escapes characters that a reader would not see, or that a terminal or a browser would interpret: controls (C0 except tab and line feed, DEL, C1),
 * format characters, characters that Unicode ignores for display, line and paragraph
 * separators, noncharacters and lone surrogates.
 *
 * A C0 control becomes `\x1b`, everything else `\u202e`, one escape for each UTF-16 code unit. Valid JSON stays valid and keeps its value, and
 * escaped text stays unchanged.
 */

/** Fast path: most text contains no such character. */
const notPlainAscii = /[^\t\n\x20-\x7e]/;
const invisiblePattern =
  /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu;
const lineFeedOrTab = /[\t\n]/g;
const partOfEscape = /\\(?:x[\da-f]?|u[\da-f]{0,3})?$/;

/** Keeps lines and tabs, for a complete page, file or message of this program that may contain untrusted text. */
export function visibleText(text: string): string {
  return notPlainAscii.test(text) ? text.replaceAll(invisiblePattern, escapeCharacter) : text;
}

/**
 * Also escapes line feeds and tabs.
 * @param maxLength UTF-16 code units of the result; longer text is truncated between characters and escapes, and ends with `…`
 */
export function visibleLine(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  // Escaping never shortens text, so text after `maxLength` cannot be part of the result.
  const line = visibleText(text.slice(0, maxLength + 1)).replaceAll(lineFeedOrTab, (character) =>
    character === '\n' ? '\\n' : '\\t',
  );
  if (line.length <= maxLength) return line;
  return `${line
    .slice(0, maxLength - 1)
    .replace(/[\ud800-\udbff]$/, '')
    .replace(partOfEscape, '')}…`;
}

/** A scraper rejects `\u202e`, so the backslashes of a label's value are doubled. */
export function visibleMetrics(page: string): string {
  return notPlainAscii.test(page)
    ? page.replaceAll(invisiblePattern, (sign) => escapeCharacter(sign).replaceAll('\\', '\\\\'))
    : page;
}

function escapeCharacter(character: string): string {
  if (character === '\r') return '\\r';
  let text = '';
  for (let i = 0; i < character.length; i++) {
    const code = character.charCodeAt(i);
    text += code < 0x20 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  }
  return text;
}
