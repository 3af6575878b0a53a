/** A proxy's text on its way into an object's status, where other people and their terminals read it. */
import { copiedText } from '../../runtime/copied-text.ts';
import { visibleLine } from '../../runtime/visible-text.ts';

/** Characters of a proxy's text that are kept: about the part of Envoy's message that says what is wrong. */
const maxProxyTextLength = 512;

/** The text as one escaped line of at most `maxLength` characters, in memory of its own. */
export function proxyText(text: string, maxLength = maxProxyTextLength): string {
  return copiedText(visibleLine(text.trim(), maxLength));
}
