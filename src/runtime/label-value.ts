/**
 * `not live in time` → `not_live_in_time`: values of metric labels are tokens, as in Prometheus, for queries and
 * alerts.
 */
export function labelValue(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_');
}
