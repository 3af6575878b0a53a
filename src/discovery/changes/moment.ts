export const timeFormats = '14:05 (UTC), 15m, 2h or 2026-11-29T14:05:00Z';

const clockTime = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;
const agePattern = /^(\d{1,6})([smhd])$/;
const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * @param text one of {@link timeFormats}; a time of day is the most recent one
 * @param now Unix time in milliseconds
 * @returns Unix time in milliseconds; `undefined` if the text is invalid
 */
export function parseTime(text: string, now: number): number | undefined {
  const [, hours, minutes, seconds = '0'] = clockTime.exec(text) ?? [];
  if (hours !== undefined) {
    const timeMs = new Date(now).setUTCHours(Number(hours), Number(minutes), Number(seconds), 0);
    return timeMs > now ? timeMs - unitMs.d : timeMs;
  }
  const [, count, unit] = agePattern.exec(text) ?? [];
  if (count !== undefined) return now - Number(count) * unitMs[unit as keyof typeof unitMs];
  const timeMs = /^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
