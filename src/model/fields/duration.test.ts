import { describe, expect, it } from 'vitest';
import { durationMsOf } from './duration.ts';

describe('a duration', () => {
  it.each([
    ['0', 0],
    ['0s', 0],
    ['1.5s', 1500],
    ['100ms', 100],
    ['1h2m3s', 3_723_000],
    ['.5m', 30_000],
    ['250us', 0.25],
    ['1500ns', 0.0015],
    ['-2s', -2000],
  ])('is parsed from %s as %d ms', (text, ms) => {
    expect(durationMsOf(text)).toBe(ms);
  });

  it.each(['', '5', '1 s', 's', '1d', '1s ', '1.2.3s', '--1s'])('is invalid if it is %j', (text) => {
    expect(durationMsOf(text)).toBeUndefined();
  });
});
