import { expect, test } from 'vitest';
import { uncaughtErrors } from '../../test/harness/uncaught-errors.ts';
import { SerialProcessor } from './one-at-a-time.ts';

test('SerialProcessor processes items added during processing afterwards, in order', () => {
  const events: string[] = [];
  const line: SerialProcessor<number> = new SerialProcessor((item) => {
    events.push(`${item}`);
    if (item === 1) for (const next of [2, 3]) line.add(next);
    if (item === 2) line.add(4);
    events.push(`${item} taken`);
  });
  line.add(1);
  expect(events).toEqual(['1', '1 taken', '2', '2 taken', '3', '3 taken', '4', '4 taken']);
});

test('SerialProcessor processes all items if one fails, and throws its error afterwards', async () => {
  const caughtErrors = uncaughtErrors();
  const processedItems: number[] = [];
  const line: SerialProcessor<number> = new SerialProcessor((item) => {
    processedItems.push(item);
    if (item === 1) for (const next of [2, 3, 4]) line.add(next);
    if (item === 1 || item === 3) throw new Error(`not ${item}`);
  });
  expect(() => line.add(1)).toThrow('not 1');
  expect(processedItems).toEqual([1, 2, 3, 4]);
  await Promise.resolve();
  expect(caughtErrors.map(({ error }) => String(error))).toEqual(['Error: not 3']);
  line.add(5);
  expect(processedItems.at(-1)).toBe(5);
});
