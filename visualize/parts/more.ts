/**
 * Such as `… and 999,900 more: type in the filter`.
 *
 * @param hint action that shows the omitted items
 */
export function moreText(count: number, hint: string): string {
  return `… and ${count.toLocaleString('en')} more${hint === '' ? '' : `: ${hint}`}`;
}
