import { expect, test } from 'vitest';
import { OneAtATime } from './one-at-a-time.ts';

test('what comes of taking one waits until that one has been taken, in the order in which it came', () => {
  const seen: string[] = [];
  const line: OneAtATime<number> = new OneAtATime((item) => {
    seen.push(`${item}`);
    if (item === 1) for (const next of [2, 3]) line.add(next);
    if (item === 2) line.add(4);
    seen.push(`${item} taken`);
  });
  line.add(1);
  expect(seen).toEqual(['1', '1 taken', '2', '2 taken', '3', '3 taken', '4', '4 taken']);
});

test('one that cannot be taken takes with it what has come of it, and nothing later', () => {
  const seen: number[] = [];
  const line: OneAtATime<number> = new OneAtATime((item) => {
    seen.push(item);
    if (item !== 1) return;
    line.add(2);
    throw new Error('not this one');
  });
  expect(() => line.add(1)).toThrow('not this one');
  line.add(3);
  expect(seen).toEqual([1, 3]);
});
