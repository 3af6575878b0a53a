import { copiedText } from '../../../runtime/copied-text.ts';

/** Maximum length in a log line or a status. */
const maxClientTextLength = 512;

export function shortenText(text: string, maxLength = maxClientTextLength): string {
  return text.length <= maxLength ? text : `${copiedText(text.slice(0, maxLength))}… (${text.length} characters)`;
}
