import { expect, test } from 'vitest';
import { programTime, setProgramClock, updateClock } from './program-clock.ts';

const startedAt = '2026-01-01T00:00:00.000Z';
const start = Date.parse(startedAt);

test("a page that is opened late has the program's current time even if the last record is old", () => {
  setProgramClock(startedAt, start + 42 * 60_000, 5_000);
  updateClock(10 * 60_000, 5_010);
  expect(programTime(5_010)).toBe(42 * 60_000 + 10);
  expect(programTime(65_000)).toBe(43 * 60_000);
});

test('a new record sets the clock, because wall clocks are adjusted', () => {
  setProgramClock(startedAt, start + 1_000, 0);
  updateClock(1_900, 500);
  expect(programTime(500)).toBe(1_900);
  updateClock(2_300, 1_000);
  expect(programTime(1_000)).toBe(2_300);
});

test('time continues from the last record if there is no wall clock or it is before the start of the program', () => {
  for (const now of [undefined, start - 60_000, Number.NaN]) {
    setProgramClock(startedAt, now, 0);
    expect(programTime(0)).toBeUndefined();
    updateClock(700, 10);
    expect(programTime(110)).toBe(800);
  }
});
