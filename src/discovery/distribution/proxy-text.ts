/** What of a proxy's text may reach an object, where other people and their terminals read it. */
import { copiedText } from '../../runtime/copied-text.ts';

/** Characters of a proxy's text that are kept: about the part of Envoy's message that says what is wrong. */
const longestProxyText = 512;

/** Characters of control and of format (which turn the direction of a text, or are not seen), halves of characters, ends of lines. */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** The text as one line of bounded length, without anything that moves a cursor or turns the direction of the text. */
export function plainText(text: string, longest = longestProxyText): string {
  // What is cut off need not be looked at, however long it is.
  const plain = text
    .slice(0, 4 * longest)
    .replace(unprintable, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const isWhole = text.length <= 4 * longest && plain.length <= longest;
  return isWhole ? copiedText(plain) : `${copiedText(plain.slice(0, longest).replace(unprintable, ''))}…`;
}
