import { expect, test } from 'vitest';
import { uncaughtErrors } from '../../test/harness/uncaught-errors.ts';
import { OneAtATime } from './one-at-a-time.ts';

test('items that are added while one is processed wait for its end, in their order', () => {
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

test('an item that fails does not prevent others, and its error is thrown after all are processed', async () => {
  const caught = uncaughtErrors();
  const seen: number[] = [];
  const line: OneAtATime<number> = new OneAtATime((item) => {
    seen.push(item);
    if (item === 1) for (const next of [2, 3, 4]) line.add(next);
    if (item === 1 || item === 3) throw new Error(`not ${item}`);
  });
  expect(() => line.add(1)).toThrow('not 1');
  expect(seen).toEqual([1, 2, 3, 4]);
  await Promise.resolve();
  expect(caught.map(({ error }) => String(error))).toEqual(['Error: not 3']);
  line.add(5);
  expect(seen.at(-1)).toBe(5);
});
