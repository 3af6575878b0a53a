/** Whether Envoy will take a regular expression: RE2's syntax (https://github.com/google/re2/wiki/Syntax), close enough. */

const maxLength = 1024;
const maxRepeat = 1000;

/** What is wrong with an expression; undefined when nothing is. */
export function re2Mistake(regex: string): string | undefined {
  if (regex === '') return 'must not be empty';
  if (regex.length > maxLength) return `must have at most ${maxLength} characters, not ${regex.length}`;
  const bare = regex.replaceAll(/\\[^1-9kK]/g, '');
  if (/\(\?<?[=!]/.test(bare)) return 'must be an RE2 expression: RE2 has no lookahead and no lookbehind';
  if (/\\[1-9k]/.test(bare)) return 'must be an RE2 expression: RE2 has no back references';
  for (const match of bare.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) {
    if (Number(match[1]) > maxRepeat || Number(match[2] ?? 0) > maxRepeat) {
      return `must be an RE2 expression: a repetition is at most ${maxRepeat}`;
    }
  }
  const beyondLatin1 = [...bareHex(regex)].find((code) => code > 0xff);
  if (beyondLatin1 !== undefined) {
    return `must be an expression of bytes, as Envoy matches them: \\x{${beyondLatin1.toString(16)}} is none`;
  }
  try {
    new RegExp(asJavaScript(regex));
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /, '') : String(error);
    return `must be an RE2 expression: ${reason}`;
  }
}

/** The code points that `\x{…}` escapes name. Envoy 1.40 has RE2 read bytes (Latin-1), so that none may be above FF. */
function bareHex(regex: string): readonly number[] {
  return [...regex.matchAll(/(?<!\\)(?:\\\\)*\\x\{([0-9a-fA-F]+)\}/g)].map((match) => Number.parseInt(match[1]!, 16));
}

/** Spellings that only RE2 knows, so that JavaScript's parser can judge the rest. */
export function asJavaScript(regex: string): string {
  return regex
    .replaceAll(/\\Q(.*?)\\E/g, (_, literal: string) => literal.replaceAll(/[^\w]/g, '\\$&'))
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\(\?[imsU]*(?:-[imsU]+)?\)/g, '')
    .replaceAll(/\(\?[imsU]+(?:-[imsU]+)?:|\(\?-[imsU]+:/g, '(?:');
}
