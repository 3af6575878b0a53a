import { expect, it } from 'vitest';
import { leafLifetime } from './leaf-lifetime.ts';

const now = new Date('2026-11-23T12:00:00.700Z');
const hour = 3_600_000;
const limits = { defaultMs: 24 * hour, maxMs: 48 * hour };
const dateAfter = (ms: number): Date => new Date(now.getTime() + ms);
const lifetimeFor = (seconds: bigint, end = dateAfter(1000 * hour)) => leafLifetime(seconds, limits, end, now);

it.each([0n, -5n, -(2n ** 63n)])('leafLifetime returns the default lifetime if the requested TTL is %d', (seconds) => {
  expect(lifetimeFor(seconds)).toEqual({
    lifetime: { notBefore: new Date('2026-11-23T11:58:00Z'), notAfter: new Date('2026-11-24T12:00:00Z') },
  });
});

it('leafLifetime returns the requested TTL, or an error if the TTL exceeds the maximum', () => {
  expect(lifetimeFor(60n)).toMatchObject({ lifetime: { notAfter: new Date('2026-11-23T12:01:00Z') } });
  expect(lifetimeFor(48n * 3600n)).toHaveProperty('lifetime');
  expect(lifetimeFor(48n * 3600n + 1n)).toEqual({
    tooLong: 'the requested lifetime must be at most 172800 s (MAX_WORKLOAD_CERT_TTL), got 172801 s',
  });
  expect(lifetimeFor(2n ** 63n - 1n)).toHaveProperty('tooLong');
});

it("leafLifetime ends at the authority's expiry, and returns an error after it", () => {
  expect(lifetimeFor(0n, dateAfter(hour))).toMatchObject({ lifetime: { notAfter: dateAfter(hour) } });
  expect(lifetimeFor(0n, dateAfter(0))).toHaveProperty('authorityExpired');
  expect(lifetimeFor(0n, dateAfter(-1))).toHaveProperty('authorityExpired');
});
