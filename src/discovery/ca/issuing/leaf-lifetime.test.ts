import { expect, it } from 'vitest';
import { leafLifetime } from './leaf-lifetime.ts';

const now = new Date('2026-11-23T12:00:00.700Z');
const hour = 3_600_000;
const limits = { defaultMs: 24 * hour, maxMs: 48 * hour };
const after = (ms: number): Date => new Date(now.getTime() + ms);
const ask = (seconds: bigint, end = after(1000 * hour)) => leafLifetime(seconds, limits, end, now);

it.each([0n, -5n, -(2n ** 63n)])('gives the default for %d', (seconds) => {
  expect(ask(seconds)).toEqual({
    lifetime: { notBefore: new Date('2026-11-23T11:58:00Z'), notAfter: new Date('2026-11-24T12:00:00Z') },
  });
});

it('gives what is asked for, up to the limit', () => {
  expect(ask(60n)).toMatchObject({ lifetime: { notAfter: new Date('2026-11-23T12:01:00Z') } });
  expect(ask(48n * 3600n)).toHaveProperty('lifetime');
  expect(ask(48n * 3600n + 1n)).toEqual({
    tooLong: 'the requested lifetime must be at most 172800 s (MAX_WORKLOAD_CERT_TTL), got 172801 s',
  });
  expect(ask(2n ** 63n - 1n)).toHaveProperty('tooLong');
});

it('ends with the authority, and gives nothing after it', () => {
  expect(ask(0n, after(hour))).toMatchObject({ lifetime: { notAfter: after(hour) } });
  expect(ask(0n, after(0))).toHaveProperty('ended');
  expect(ask(0n, after(-1))).toHaveProperty('ended');
});
