/** Each number of a fault (F1 to F13) and of a scenario is at the end of a test title in one file, so it is easy to find. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test.each([
  ['scenarios.test.ts', 'S', 26],
  ['faults.test.ts', 'F', 13],
])('%s contains a test for every numbered case', (file, letter, last) => {
  const source = readFileSync(join(import.meta.dirname, file), 'utf8');
  const numbers = [...source.matchAll(new RegExp(`\\(§2\\.[68] ${letter}(\\d+)\\)`, 'g'))].map(([, number]) =>
    Number(number),
  );
  expect([...new Set(numbers)]).toEqual(Array.from({ length: last }, (_, i) => i + 1));
});
