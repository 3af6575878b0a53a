/** Each requirement and each trap of injection-rows.ts has a test. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type InjectionRow, injectionRows } from './injection-rows.ts';

/** Listed tests that the file does not contain. */
function missingTests({ file, tests }: InjectionRow): string[] {
  if (tests.length === 0) return ['no test is named'];
  const source = readFileSync(join(packageRoot(), file), 'utf8');
  return tests.filter((title) => !["'", '"', '`'].some((quote) => source.includes(quote + title)));
}

test.each(injectionRows)('the tests of §$section $row exist', (row) => {
  expect(missingTests(row)).toEqual([]);
});

test('each section from §1 to §4 has rows', () => {
  const sections = ['1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '3.1', '3.2', '3.3', '3.4'];
  sections.push('4.1', '4.2', '4.3', '4.4', '4.5', '4.6', '4.7');
  expect([...new Set(injectionRows.map(({ section }) => section))]).toEqual(sections);
});

test('the check finds a row without a test and a row whose test does not exist', () => {
  const row = { section: '1.1', row: 'x', file: 'test/spec-rows/injection-rows.test.ts' };
  expect(missingTests({ ...row, tests: [] })).toEqual(['no test is named']);
  // Concatenated, because this file is searched, too.
  const unknownTest = ['a test that', 'nobody wrote'].join(' ');
  expect(missingTests({ ...row, tests: [unknownTest, 'each section from'] })).toEqual([unknownTest]);
});
