import { expect, test } from 'vitest';
import { completedValue } from './recorded-value.ts';

function completeValue(value: unknown): { value: unknown; cut: string[] } {
  const cutPaths: string[] = [];
  return { value: completedValue(value, (path) => cutPaths.push(path)), cut: cutPaths };
}

test('a complete recorded value is replayed unchanged', () => {
  const value = { type: 'x', list: [1, { a: null }], text: 'abc' };
  expect(completeValue(value)).toEqual({ value, cut: [] });
});

test('a truncated list is replayed in its original length with items of the same kind', () => {
  expect(completeValue({ names: ['a', 'b', '… (4 items)'] })).toEqual({
    value: { names: ['a', 'b', 'missing 1', 'missing 2'] },
    cut: ['/names'],
  });
  const { value } = completeValue([{ n: 1 }, '… (3 items)']);
  expect(value).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }]);
});

test('a truncated text is reported with its JSON Pointer', () => {
  expect(completeValue({ a: ['abc… (3000 characters)'] }).cut).toEqual(['/a/0']);
});
