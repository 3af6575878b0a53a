/**
 * Every row of spec/agent.md that MUST or SHOULD be there has a row in docs/compatibility.md, and a test that is named by its section
 * and by itself, unless that row says "no", and why.
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

function tableOf(part: string): TableRow[] {
  const text = readFileSync(join(packageRoot(), 'docs', 'compatibility.md'), 'utf8');
  const [, own = ''] = text.split(`\n## ${part}\n`);
  return own.split('\n').flatMap((line) => {
    const [, features, state = '', why = ''] = /^\| (.+?) \| (done|other|no) \|(.*)\|$/.exec(line) ?? [];
    return features === undefined ? [] : [{ features, state, why: why.trim() }];
  });
}

/** As a word: `wait` is not `--waitFor`. One that ends with a separator begins names of any end. */
function says(text: string, word: string): boolean {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const end = /[_/]$/.test(word) ? '' : `(?![\\w'])`;
  return new RegExp(`(?<![\\w'-])${escaped}${end}`, 'i').test(text);
}

function isTested(section: string, word?: string): boolean {
  const number = new RegExp(`§${section.replace('.', '\\.')}(?![.\\d])`);
  return titles.some((title) => number.test(title) && (word === undefined || says(title, word)));
}

/** What is wrong with a row; undefined: nothing. */
function whyNot(section: string, word: string, level: Level, isNamedByTable: boolean): string | undefined {
  const rows = table.filter(({ features }) => says(features, word));
  if (isNamedByTable && rows.length === 0) return 'the table does not name it';
  const refused = rows.filter(({ state }) => state === 'no');
  if (refused.some(({ why }) => why === '')) return 'the table does not say why it is not there';
  if (level === 'LATER' || refused.length > 0 || isTested(section, word)) return undefined;
  return `no test is named §${section} … ${word}`;
}

/** Sections whose rows the table has in its own words. */
const inOwnWords = new Set(['2.6', '2.8', '10.1', '10.2']);

test.each(Object.keys(agentRows))('the rows of §%s', (section) => {
  const lacking = Object.entries(agentRows[section]!).flatMap(([level, words]) =>
    words.split(/\s+/).flatMap((word) => {
      const why = whyNot(section, word, level as Level, !inOwnWords.has(section));
      return why === undefined ? [] : [`${word} (${level}): ${why}`];
    }),
  );
  expect(lacking).toEqual([]);
});

test('parts that are sentences have tests named by their sections', () => {
  expect(agentSections.filter((section) => !isTested(section))).toEqual([]);
});

test('titles are read as they will be told', () => {
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
