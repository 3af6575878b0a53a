import { expect, test } from 'vitest';
import { AddressPace } from './address-pace.ts';

const limits = { burst: 100, perSecond: 10, firstHoldMs: 1_000, maxHoldMs: 8_000 };
const me = '10.0.0.1';

function createPace() {
  const clock = { ms: 0 };
  return { clock, pace: new AddressPace(limits, () => clock.ms) };
}

test('AddressPace throttles an address that exceeds its budget for 1 s', () => {
  const { pace, clock } = createPace();
  expect(pace.chargeUnits(me, 100)).toBe(0);
  expect(pace.isThrottled(me)).toBe(false);
  expect(pace.chargeUnits(me, 1)).toBe(1_000);
  expect(pace.isThrottled(me)).toBe(true);
  expect(pace.isThrottled('10.0.0.2')).toBe(false);
  clock.ms += 1_000;
  expect(pace.isThrottled(me)).toBe(false);
});

test('AddressPace restores a budget gradually over time, and immediately by a refund', () => {
  const { pace, clock } = createPace();
  pace.chargeUnits(me, 100);
  clock.ms += 2_000;
  expect(pace.chargeUnits(me, 20)).toBe(0);
  pace.refund(me, 50);
  expect(pace.chargeUnits(me, 50)).toBe(0);
  expect(pace.chargeUnits(me, 1)).toBe(1_000);
});

test('AddressPace doubles the throttling duration up to a limit, and resets it after a quiet period', () => {
  const { pace, clock } = createPace();
  const holds: number[] = [];
  for (let i = 0; i < 6; i++) {
    const ms = pace.chargeUnits(me, 101);
    holds.push(ms);
    clock.ms += ms;
  }
  expect(holds).toEqual([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  clock.ms += 80_000;
  expect(pace.chargeUnits(me, 101)).toBe(1_000);
});

test('AddressPace does not extend throttling for events while an address is throttled', () => {
  const { pace, clock } = createPace();
  pace.chargeUnits(me, 101);
  clock.ms += 500;
  for (let i = 0; i < 1_000; i++) expect(pace.chargeUnits(me, 10)).toBe(0);
  clock.ms += 500;
  expect(pace.isThrottled(me)).toBe(false);
});

test('AddressPace limits the number of remembered addresses', () => {
  const { pace } = createPace();
  for (let i = 0; i < 30_000; i++) pace.chargeUnits(`a${i}`, 101);
  expect([pace.isThrottled('a9999'), pace.isThrottled('a10000')]).toEqual([false, true]);
});
