import { expect, test } from 'vitest';
import { createAdmission } from './ads-admission.ts';

test('streams within the rate begin at once', () => {
  let now = 0;
  const admission = createAdmission(10, () => now);
  for (let i = 0; i < 20; i++, now += 100) expect(admission.admit()).toBe(0);
});

test('streams beyond it are spaced, and refused when they would wait for more than a second', () => {
  const admission = createAdmission(2, () => 5_000);
  expect([1, 2, 3, 4, 5].map(() => admission.admit())).toEqual([0, 500, 1_000, undefined, undefined]);
});

test('a refused stream does not make the next ones wait', () => {
  let now = 0;
  const admission = createAdmission(1, () => now);
  expect([1, 2, 3].map(() => admission.admit())).toEqual([0, 1_000, undefined]);
  now = 2_000;
  expect(admission.admit()).toBe(0);
});

test('no rate is no limit', () => {
  const admission = createAdmission(0, () => 0);
  expect([1, 2, 3].map(() => admission.admit())).toEqual([0, 0, 0]);
});
