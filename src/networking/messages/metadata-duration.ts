const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** Parses a duration in node metadata (`1h30m`, `15s`, `500ms`) to milliseconds. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^(?:\d+(?:\.\d+)?(?:h|ms|m|s))+$/.test(value)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g))
    totalMs += Number(amount) * unitMs[unit!]!;
  return totalMs;
}
