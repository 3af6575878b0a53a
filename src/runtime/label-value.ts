/** As in Prometheus, values of metric labels are tokens: `not live in time` becomes `not_live_in_time`. */
export function labelValue(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_');
}
