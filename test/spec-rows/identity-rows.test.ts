/** Every identity attack has a row in docs/identity-reference.md, and the test named in the row exists. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';

/** Attacks that the table must contain. */
const attacks = [
  ...['other names', 'expired token', 'not valid yet', 'another issuer', 'signed by another key', 'alg: none'],
  ...['another audience', 'revoked token', 'a request for another', 'of another trust domain', 'expired certificate'],
  ...['self-signed', 'node with another namespace', 'mutated'],
];

interface Row {
  readonly attackText: string;
  readonly file: string;
  readonly title: string;
}

const textOf = (file: string): string => readFileSync(join(packageRoot(), file), 'utf8');

function rowsIn(text: string): Row[] {
  const [, table = ''] = text.split('\n| attack | rejected by | test |\n');
  const lines = table.split('\n\n')[0]!.split('\n').slice(1);
  return lines.map((line) => {
    const [, attackText = '', file = '', title = ''] = /^\| (.+?) \| .+ \| `(.+?)`: `(.+)` \|$/.exec(line) ?? [];
    return { attackText, file, title };
  });
}

const rows = rowsIn(textOf('docs/identity-reference.md'));

test.each(attacks)('the table of attacks contains the attack "%s"', (phrase) => {
  expect(rows.filter(({ attackText }) => attackText.includes(phrase))).not.toEqual([]);
});

test.each(rows)('the test of this attack exists: $attackText', ({ file, title }) => {
  const source = textOf(file);
  expect(source.includes(`'${title}'`) || source.includes(`'${title},`)).toBe(true);
});
