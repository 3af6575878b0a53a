import { expect, test } from 'vitest';
import { completedValue } from './recorded-value.ts';

function given(value: unknown): { value: unknown; cut: string[] } {
  const cut: string[] = [];
  return { value: completedValue(value, (place) => cut.push(place)), cut };
}

test('a complete recorded value is replayed unchanged', () => {
  const value = { type: 'x', list: [1, { a: null }], text: 'abc' };
  expect(given(value)).toEqual({ value, cut: [] });
});

test('a truncated list is replayed in its original length with items of the same kind', () => {
  expect(given({ names: ['a', 'b', '… (4 items)'] })).toEqual({
    value: { names: ['a', 'b', 'missing 1', 'missing 2'] },
    cut: ['/names'],
  });
  const { value } = given([{ n: 1 }, '… (3 items)']);
  expect(value).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }]);
});

test('a truncated text is reported with its JSON Pointer', () => {
  expect(given({ a: ['abc… (3000 characters)'] }).cut).toEqual(['/a/0']);
});
