/**
 * What a list says of what it leaves out: `… and 999,900 more: type in the filter`.
 *
 * @param how what to do to see them
 */
export function moreInWords(count: number, how: string): string {
  return `… and ${count.toLocaleString('en')} more${how === '' ? '' : `: ${how}`}`;
}
