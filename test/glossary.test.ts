/** docs/glossary.md: a term that stands nowhere any more, or in another file than its row names, is out of date. */
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

/** As a word of a sentence, of a name (`handOver`, `stand-in`, `push_context`), or of an event. */
function stands(term: string, text: string): boolean {
  const pattern = term.split(/[ -]/).join('[ _-]?');
  const inName = pattern.replace(/^./, (letter) => letter.toUpperCase());
  return new RegExp(`\\b${pattern}`, 'i').test(text) || new RegExp(`(?<=[a-z])${inName}`).test(text);
}

describe('docs/glossary.md', () => {
  it('has rows, each term once, in order', () => {
    expect(sections.map((section) => section.length)).not.toContain(0);
    expect(new Set(rows.map(({ term }) => term)).size).toBe(rows.length);
    for (const section of sections) {
      const terms = section.map(({ term }) => term);
      expect(terms).toEqual([...terms].sort());
    }
  });

  it.each(rows)('$term stands in the file that its row names', ({ term, file }) => {
    expect(existsSync(file), file).toBe(true);
    expect(stands(term, readFileSync(file, 'utf8')), `${term} in ${file}`).toBe(true);
  });

  it('knows a term that is gone', () => {
    expect(stands('doomed', 'a doomed epoch')).toBe(true);
    expect(stands('doomed', 'an epoch')).toBe(false);
    expect(stands('turn', 'a return')).toBe(false);
  });
});
