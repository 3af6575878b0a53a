import { expect, test } from 'vitest';
import { shortenPair } from './context-change.ts';

test('two short values are shown completely', () => {
  expect(shortenPair('files-1', { digest: 'files-2' })).toEqual(['files-1', '{"digest":"files-2"}']);
});

test('two long values are shortened so that both show the first difference', () => {
  const commonPrefix = 'sha256:'.padEnd(100, '0');
  const [previous, next] = shortenPair(`${commonPrefix}a-old-end`, `${commonPrefix}b-new-end`);
  expect(previous).toBe(`…${'0'.repeat(12)}a-old-end`);
  expect(next).toBe(`…${'0'.repeat(12)}b-new-end`);
  const [shortText, longText] = shortenPair(commonPrefix, `${commonPrefix}${'x'.repeat(200)}`);
  expect(shortText).toBe(`…${'0'.repeat(12)}`);
  expect(longText).toMatch(/^…0{12}x+…$/);
  expect(longText).toHaveLength(60);
});

test('an added or removed value is shown from its beginning', () => {
  expect(shortenPair(undefined, 'x'.repeat(80))[1]).toMatch(/^…?x/);
  expect(shortenPair(undefined, undefined)).toEqual(['nothing', 'nothing']);
});
