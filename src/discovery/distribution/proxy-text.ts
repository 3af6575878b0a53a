/** Users read the text of a status in terminals. */
import { copiedText } from '../../runtime/copied-text.ts';
import { visibleLine } from '../../runtime/visible-text.ts';

/** Envoy's message usually names the error within its first 512 characters. */
const maxProxyTextLength = 512;

/** Returns one escaped line, which is copied so that the original can be freed. */
export function proxyText(text: string, maxLength = maxProxyTextLength): string {
  return copiedText(visibleLine(text.trim(), maxLength));
}
