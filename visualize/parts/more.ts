/**
 * Text for omitted list items, such as `… and 999,900 more: type in the filter`.
 *
 * @param hint action that shows them
 */
export function moreText(count: number, hint: string): string {
  return `… and ${count.toLocaleString('en')} more${hint === '' ? '' : `: ${hint}`}`;
}
