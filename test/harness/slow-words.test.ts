import { expect, it } from 'vitest';
import { mistakesIn } from './slow-words.ts';

const retried = (second: number, what = 'the Lease'): string =>
  `2026-11-28T08:00:0${second}Z\twarn\t${what} cannot be written, tried again in ${second} s: no answer within 5000 ms`;
const broken = '2026-11-28T08:00:00Z\terror\tresources cannot be made: no such field';

it('what a busy machine may be too slow for is no mistake, anything else is', () => {
  expect(mistakesIn([retried(1), broken, retried(2), retried(3)])).toEqual([broken]);
});

it('what never gets done is one, also where each try says that there will be another', () => {
  const tries = [1, 2, 3, 4].map((second) => retried(second));
  expect(mistakesIn([...tries, retried(5, 'a status')])).toEqual(tries);
});
