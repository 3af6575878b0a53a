/** Every way to get an identity that is not one's own has a row in docs/identity.md, and the row a test that is there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';

/** What must be tried, in the table's words. */
const tried = [
  ...[
    'foreign names',
    'expired token',
    'token of the future',
    'another issuer',
    'somebody else has signed',
    'alg: none',
  ],
  ...[
    'another audience',
    'token that was taken back',
    'in the name of another',
    'of another trust domain',
    'has ended',
  ],
  ...['self-made', 'node that says another namespace', 'mutated'],
];

interface Row {
  readonly what: string;
  readonly file: string;
  readonly title: string;
}

const textOf = (file: string): string => readFileSync(join(packageRoot(), file), 'utf8');

function rowsIn(text: string): Row[] {
  const [, table = ''] = text.split('\n| tried | what refuses it | test |\n');
  const lines = table.split('\n\n')[0]!.split('\n').slice(1);
  return lines.map((line) => {
    const [, what = '', file = '', title = ''] = /^\| (.+?) \| .+ \| `(.+?)`: (.+) \|$/.exec(line) ?? [];
    return { what, file, title };
  });
}

const rows = rowsIn(textOf('docs/identity.md'));

test.each(tried)('the table has what was tried: %s', (words) => {
  expect(rows.filter(({ what }) => what.includes(words))).not.toEqual([]);
});

test.each(rows)('$what: its test is there', ({ file, title }) => {
  const source = textOf(file);
  expect(source.includes(`'${title}'`) || source.includes(`'${title},`)).toBe(true);
});
