import { visibleText } from './visible-text.ts';

/** Text as content or as a quoted attribute of XML or HTML. Also escapes characters that XML cannot contain. */
export function markupText(text: string): string {
  return visibleText(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
