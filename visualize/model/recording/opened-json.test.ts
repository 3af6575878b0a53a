import { expect, test } from 'vitest';
import { initiallyOpenedPaths, maxJsonEntries, maxOpenedFields, shownEntries } from './opened-json.ts';

const fields = (count: number, value: unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]));

test('short lists and objects are initially open, while long ones are open only if they contain a new value', () => {
  const value = { short: { a: [1] }, long: fields(13, { b: 1 }), 'a/b': {} };
  expect([...initiallyOpenedPaths(value, '', undefined)]).toEqual(['/short', '/a~1b', '/short/a']);
  const markedPointers = new Map([['/long/k3/b', 0]]);
  expect([...initiallyOpenedPaths(value, '', markedPointers)].filter((pointer) => pointer.startsWith('/long'))).toEqual(
    [
      '/long',
      '/long/k3',
      ...Array.from({ length: 13 }, (_, i) => `/long/k${i}`).filter((pointer) => pointer !== '/long/k3'),
    ].sort((a, b) => Number(a.slice(7)) - Number(b.slice(7))),
  );
});

test('a limited number of fields, preferably near the top, is open in a payload that is wide on each level', () => {
  let value: unknown = 1;
  for (let level = 0; level < 6; level++) value = fields(12, value);
  const openedPointers = [...initiallyOpenedPaths(value as object, '', undefined)];
  expect(openedPointers.length * 12).toBeLessThanOrEqual(maxOpenedFields);
  expect(openedPointers.slice(0, 12)).toEqual(Array.from({ length: 12 }, (_, i) => `/k${i}`));
});

test('only the first entries of a million are shown', () => {
  expect(shownEntries(fields(1_000_000, 0)).length).toBe(maxJsonEntries);
  expect(shownEntries(Array.from({ length: 1_000_000 }, () => 7)).at(-1)).toEqual([String(maxJsonEntries - 1), 7]);
});
