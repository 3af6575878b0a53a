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
  try {
    new RegExp(asJavaScript(regex));
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /, '') : String(error);
    return `must be an RE2 expression: ${reason}`;
  }
}

/** Spellings that only RE2 knows, so that JavaScript's parser can judge the rest. */
function asJavaScript(regex: string): string {
  return regex
    .replaceAll(/\\Q(.*?)\\E/g, (_, literal: string) => literal.replaceAll(/[^\w]/g, '\\$&'))
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\(\?[imsU]*(?:-[imsU]+)?\)/g, '')
    .replaceAll(/\(\?[imsU]+(?:-[imsU]+)?:|\(\?-[imsU]+:/g, '(?:');
}
