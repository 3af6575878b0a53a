/**
 * Titles of tests that contain a section number of the requirements (`§N`), extracted from the source without running tests.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';

const files = ['src/**/*.test.ts', 'test/**/*.test.ts', 'machines/**/*.test.ts'];

/** Titles with a `§`. A table results in one title per row, with the row's first text as argument. */
export function testTitles(): string[] {
  return globSync(files, { cwd: packageRoot() }).flatMap((file) => {
    const source = readFileSync(join(packageRoot(), file), 'utf8');
    return source.includes('§') ? titlesIn(source) : [];
  });
}

const titled = /(?<![.\w])(?:test|it|describe)(?=[.(])(?:\.(?!each)\w+)*(\.each\b)?/g;

/** @param source of a test file */
export function titlesIn(source: string): string[] {
  const starts = [...source.matchAll(titled)];
  let suite = '';
  return starts.flatMap((start, index) => {
    const testSource = source.slice(start.index + start[0].length, starts[index + 1]?.index);
    if (start[1] === undefined) {
      const [, , title = ''] = /^\(\s*(['"`])(.*?)\1,/.exec(testSource) ?? [];
      const isNested = source[start.index - 1] === ' ';
      if (start[0].startsWith('describe')) suite = title;
      const name = isNested ? `${suite} ${title}` : title;
      return title !== '' && name.includes('§') ? [name] : [];
    }
    const [, , title = ''] = /\]\s*(?:as const)?\)\(\s*(['"`])([^\n]*?)\1,/.exec(testSource) ?? [];
    // The first text of a row, on a separate line or after the bracket.
    const names = [...testSource.matchAll(/^\s*(?:\[\s*)?(['"`])([^\n]+?)\1/gm)].map(([, , name]) => name!);
    const all = title.includes('%s') && names.length > 0 ? names.map((name) => title.replace('%s', name)) : [title];
    return all.filter((name) => name.includes('§'));
  });
}
