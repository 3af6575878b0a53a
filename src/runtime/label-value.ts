/** `not live in time` → `not_live_in_time`: queries and alerts are written with tokens, as Prometheus' own labels are. */
export function labelValue(words: string): string {
  return words.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_');
}
