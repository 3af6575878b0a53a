import { expect, it } from 'vitest';
import { parseDuration } from './metadata-duration.ts';

it.each([
  ['15s', 15_000],
  ['500ms', 500],
  ['1h30m', 5_400_000],
  ['0s', 0],
  ['1.5s', 1_500],
  ['15', undefined],
  ['', undefined],
  [15, undefined],
  [undefined, undefined],
])('the metadata duration %j is parsed as %j milliseconds', (value, ms) => {
  expect(parseDuration(value)).toBe(ms);
});
