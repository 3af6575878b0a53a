/**
 * Text for omitted list items, such as `… and 999,900 more: type in the filter`.
 *
 * @param how action that shows them
 */
export function moreText(count: number, how: string): string {
  return `… and ${count.toLocaleString('en')} more${how === '' ? '' : `: ${how}`}`;
}
