/** Each term of docs/glossary.md occurs in the file of its row. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';

const glossary = join(packageRoot(), 'docs/glossary.md');

interface Row {
  readonly term: string;
  readonly meaning: string;
  readonly file: string;
}

const sections: readonly (readonly Row[])[] = readFileSync(glossary, 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((section) =>
    [...section.matchAll(/^\| (?!term|---)(.+?) \| (.+?) \| \[.+?\]\((.+?)\) \|$/gm)].map(
      ([, term, meaning, link]): Row => ({ term: term!, meaning: meaning!, file: join(dirname(glossary), link!) }),
    ),
  );
const rows = sections.flat();

/** Whether the term occurs as a word of a sentence, in a name (`handOver`, `stand-in`, `push_context`) or in an event. */
function occurs(term: string, text: string): boolean {
  const pattern = term.split(/[ -]/).join('[ _-]?');
  const inName = pattern.replace(/^./, (letter) => letter.toUpperCase());
  return new RegExp(`\\b${pattern}`, 'i').test(text) || new RegExp(`(?<=[a-z])${inName}`).test(text);
}

describe('docs/glossary.md', () => {
  it('docs/glossary.md contains each term once, in alphabetical order', () => {
    expect(sections.map((section) => section.length)).not.toContain(0);
    expect(new Set(rows.map(({ term }) => term)).size).toBe(rows.length);
    for (const section of sections) {
      const terms = section.map(({ term }) => term);
      expect(terms).toEqual([...terms].sort());
    }
  });

  it.each(rows)('the term $term occurs in the file of its row', ({ term, file }) => {
    expect(existsSync(file), file).toBe(true);
    expect(occurs(term, readFileSync(file, 'utf8')), `${term} in ${file}`).toBe(true);
  });

  it('the check finds a term that no longer occurs', () => {
    expect(occurs('doomed', 'a doomed epoch')).toBe(true);
    expect(occurs('doomed', 'an epoch')).toBe(false);
    expect(occurs('turn', 'a return')).toBe(false);
  });
});
