import { visibleText } from './visible-text.ts';

/** Text as content or as a quoted attribute of XML or HTML. Escapes first what XML cannot contain. Runs in a browser. */
export function markupText(text: string): string {
  return visibleText(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
