import { expect, it } from 'vitest';
import { scalarText } from './scalar-text.ts';

it.each<[unknown, string]>([
  ['1.2', '1.2'],
  [12, '12'],
  [false, 'false'],
  [null, ''],
  [undefined, ''],
  [['a'], ''],
  [JSON.parse('{"toString": 1, "valueOf": 1}'), ''],
])('%j is the text %j', (value, text) => {
  expect(scalarText(value)).toBe(text);
});
