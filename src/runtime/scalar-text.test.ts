import { expect, it } from 'vitest';
import { scalarNumber, scalarText } from './scalar-text.ts';

it.each<[unknown, string]>([
  ['1.2', '1.2'],
  [12, '12'],
  [false, 'false'],
  [null, ''],
  [undefined, ''],
  [['a'], ''],
  [JSON.parse('{"toString": 1, "valueOf": 1}'), ''],
])('scalarText returns for %j the text %j', (value, text) => {
  expect(scalarText(value)).toBe(text);
});

it.each<[unknown, number]>([
  [12, 12],
  ['12', 12],
  [0, 0],
  ['', Number.NaN],
  [null, Number.NaN],
  [undefined, Number.NaN],
  [[7], Number.NaN],
  ['x', Number.NaN],
])('scalarNumber returns for %j the number %d', (value, number) => {
  expect(scalarNumber(value)).toBe(number);
});
