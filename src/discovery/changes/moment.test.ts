import { expect, it } from 'vitest';
import { parseTime } from './moment.ts';

const now = Date.parse('2026-11-29T14:20:30Z');
const at = (text: string): string | undefined => {
  const timestampMs = parseTime(text, now);
  return timestampMs === undefined ? undefined : new Date(timestampMs).toISOString();
};

it('momentOf returns the last occurrence of a time of day', () => {
  expect(at('14:05')).toBe('2026-11-29T14:05:00.000Z');
  expect(at('14:20:31')).toBe('2026-11-28T14:20:31.000Z');
  expect(at('9:00')).toBe('2026-11-29T09:00:00.000Z');
});

it('momentOf subtracts a duration from the current time, and returns a given date unchanged', () => {
  expect(at('90s')).toBe('2026-11-29T14:19:00.000Z');
  expect(at('2h')).toBe('2026-11-29T12:20:30.000Z');
  expect(at('2026-11-29T14:05:00+02:00')).toBe('2026-11-29T12:05:00.000Z');
});

it('momentOf rejects other formats', () => {
  for (const text of ['25:00', '14:60', '1', 'yesterday', '5 m', '2026-13-01T00:00:00Z', '9999999d']) {
    expect(at(text)).toBeUndefined();
  }
});
