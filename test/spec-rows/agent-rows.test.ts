/**
 * Every MUST or SHOULD row of agent-rows.ts has a row in docs/compatibility.md and a test whose title contains its
 * section and name, unless the documented state is "no" with a reason.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { agentRows, agentSections, type Level } from './agent-rows.ts';
import { testTitles, titlesIn } from './test-titles.ts';

interface TableRow {
  readonly features: string;
  readonly state: string;
  readonly why: string;
}

const titles = testTitles();
const table = tableOf('pilot-agent');

function tableOf(heading: string): TableRow[] {
  const text = readFileSync(join(packageRoot(), 'docs', 'compatibility.md'), 'utf8');
  const [, partText = ''] = text.split(`\n## ${heading}\n`);
  return partText.split('\n').flatMap((line) => {
    const [, features, state = '', reasonText = ''] = /^\| (.+?) \| (done|other|no) \|(.*)\|$/.exec(line) ?? [];
    return features === undefined ? [] : [{ features, state, why: reasonText.trim() }];
  });
}

/** Matches complete words: `wait` does not match `--waitFor`. A word that ends with a separator matches as a prefix. */
function containsWord(text: string, word: string): boolean {
  const escapedWord = word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const end = /[_/]$/.test(word) ? '' : `(?![\\w'])`;
  return new RegExp(`(?<![\\w'-])${escapedWord}${end}`, 'i').test(text);
}

function isTested(section: string, word?: string): boolean {
  const number = new RegExp(`§${section.replace('.', '\\.')}(?![.\\d])`);
  return titles.some((title) => number.test(title) && (word === undefined || containsWord(title, word)));
}

/** Problem of a row; `undefined` without a problem. */
function rowProblem(section: string, word: string, level: Level, isNamedByTable: boolean): string | undefined {
  const rows = table.filter(({ features }) => containsWord(features, word));
  if (isNamedByTable && rows.length === 0) return 'the table does not name it';
  const refusedRows = rows.filter(({ state }) => state === 'no');
  if (refusedRows.some(({ why }) => why === '')) return 'the table has no reason for its absence';
  if (level === 'LATER' || refusedRows.length > 0 || isTested(section, word)) return undefined;
  return `no test is named §${section} … ${word}`;
}

/** Sections whose rows have other names in the table. */
const sectionsWithOtherNames = new Set(['2.6', '2.8', '10.1', '10.2']);

test.each(Object.keys(agentRows))('every row of §%s is documented and tested', (section) => {
  const problems = Object.entries(agentRows[section]!).flatMap(([level, wordList]) =>
    wordList.split(/\s+/).flatMap((word) => {
      const foundProblem = rowProblem(section, word, level as Level, !sectionsWithOtherNames.has(section));
      return foundProblem === undefined ? [] : [`${word} (${level}): ${foundProblem}`];
    }),
  );
  expect(problems).toEqual([]);
});

test('sections that consist of sentences have tests that contain their numbers', () => {
  expect(agentSections.filter((section) => !isTested(section))).toEqual([]);
});

test('titles are extracted as they are reported', () => {
  const source = `
describe('§9 names', () => {
  test('are lower case', () => {});
  test.each<[row: string, f: (o: X) => unknown]>([
    ['--a', { test: 'x' }],
    [
      '--b by default',
      1,
    ],
  ])('§1.2 %s', () => {});
});
test('it says nothing', () => {});
`;
  expect(titlesIn(source)).toEqual(['§9 names', '§9 names are lower case', '§1.2 --a', '§1.2 --b by default']);
});
