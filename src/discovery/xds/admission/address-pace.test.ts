import { expect, test } from 'vitest';
import { AddressPace } from './address-pace.ts';

const limits = { burst: 100, perSecond: 10, firstHoldMs: 1_000, maxHoldMs: 8_000 };
const me = '10.0.0.1';

function given() {
  const clock = { ms: 0 };
  return { clock, pace: new AddressPace(limits, () => clock.ms) };
}

test('AddressPace throttles an address that exceeds its budget for a second', () => {
  const { pace, clock } = given();
  expect(pace.spend(me, 100)).toBe(0);
  expect(pace.isHeldOff(me)).toBe(false);
  expect(pace.spend(me, 1)).toBe(1_000);
  expect(pace.isHeldOff(me)).toBe(true);
  expect(pace.isHeldOff('10.0.0.2')).toBe(false);
  clock.ms += 1_000;
  expect(pace.isHeldOff(me)).toBe(false);
});

test('AddressPace restores a budget over time, and at once when it is refunded', () => {
  const { pace, clock } = given();
  pace.spend(me, 100);
  clock.ms += 2_000;
  expect(pace.spend(me, 20)).toBe(0);
  pace.giveBack(me, 50);
  expect(pace.spend(me, 50)).toBe(0);
  expect(pace.spend(me, 1)).toBe(1_000);
});

test('AddressPace doubles the throttling duration each time up to a limit, and resets it after a quiet period', () => {
  const { pace, clock } = given();
  const holds: number[] = [];
  for (let i = 0; i < 6; i++) {
    const ms = pace.spend(me, 101);
    holds.push(ms);
    clock.ms += ms;
  }
  expect(holds).toEqual([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  clock.ms += 80_000;
  expect(pace.spend(me, 101)).toBe(1_000);
});

test('AddressPace does not extend throttling while it lasts', () => {
  const { pace, clock } = given();
  pace.spend(me, 101);
  clock.ms += 500;
  for (let i = 0; i < 1_000; i++) expect(pace.spend(me, 10)).toBe(0);
  clock.ms += 500;
  expect(pace.isHeldOff(me)).toBe(false);
});

test('AddressPace limits the number of remembered addresses', () => {
  const { pace } = given();
  for (let i = 0; i < 30_000; i++) pace.spend(`a${i}`, 101);
  expect([pace.isHeldOff('a9999'), pace.isHeldOff('a10000')]).toEqual([false, true]);
});
