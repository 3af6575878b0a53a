/** Texts that a client chose, before they go where people read: no line of a log and no status is as long as it likes. */
import { copiedText } from '../../../runtime/copied-text.ts';

/** Characters of a client's text that go into a line of the log or into a stream's status. */
const longestClientText = 512;

/** The text, or its beginning and how long it is. */
export function shortened(text: string, longest = longestClientText): string {
  return text.length <= longest ? text : `${copiedText(text.slice(0, longest))}… (${text.length} characters)`;
}
