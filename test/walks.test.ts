/** The walks of docs/architecture.md are correct: files exist, and each is connected to one above it. */
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../src/runtime/package-root.ts';
import { documentedWalks, type VisitedFile, type Walk, walksOf } from './harness/walks.ts';

/** Maximum files, charts and structures from an EndpointSlice event to EDS. */
const sliceWalk = { title: 'EndpointSlice event to EDS', maxFiles: 30, charts: 4, structures: 3 } as const;

const textOf = (file: string): string => {
  const path = join(packageRoot(), file);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
};

type TextOf = (file: string) => string;

function importsOf(file: string, text: TextOf): readonly string[] {
  return [...text(file).matchAll(/\b(?:from |import |import\()'(\.[^']+)'/g)].map(([, target = '']) =>
    posix.join(posix.dirname(file), target),
  );
}

/** Whether the named connection exists, or an import if the line names none. */
function isConnected({ file, connection }: VisitedFile, above: readonly string[], text: TextOf): boolean {
  const imports = (one: string, other: string): boolean => importsOf(one, text).includes(other);
  if (connection === undefined) return above.some((one) => imports(one, file) || imports(file, one));
  const { by, of } = connection;
  switch (by) {
    case 'port':
      return imports(file, of) && above.some((one) => imports(one, of));
    case 'composed in':
      return reaches(of, file, text) && above.some((one) => reaches(of, one, text));
    case 'base of':
      return imports(of, file) && / extends /.test(text(of)) && above.some((one) => imports(one, of));
    case 'event':
      return (
        [file, ...above].filter((one) => text(one).includes(`'${of}'`)).length > 1 && text(file).includes(`'${of}'`)
      );
  }
}

/** Whether a composition creates a part directly or with the factory of the part's folder. */
function reaches(composition: string, file: string, text: TextOf): boolean {
  const direct = importsOf(composition, text);
  return (
    direct.includes(file) ||
    direct.some((factory) => /\/make-[\w-]+\.ts$/.test(factory) && importsOf(factory, text).includes(file))
  );
}

/** Lines of a walk that are incorrect. */
function problemsOf({ title, files }: Walk, text: TextOf): string[] {
  return files.flatMap(({ file, connection }, index) => {
    if (text(file) === '') return [`${title}: ${file} does not exist`];
    if (files.findIndex((one) => one.file === file) !== index) return [`${title}: ${file} is listed twice`];
    if (index === 0 || !/\.tsx?$/.test(file)) return [];
    const above = files.slice(0, index).map((one) => one.file);
    return isConnected({ file, ...(connection && { connection }) }, above, text)
      ? []
      : [`${title}: ${file} is not connected to a file above it`];
  });
}

describe('the walks of docs/architecture.md', () => {
  const walks = documentedWalks();

  it.each(walks)('walk "$title": each file exists and is connected to a file above it', (walk) => {
    expect(walk.files.length).toBeGreaterThan(1);
    expect(problemsOf(walk, textOf)).toEqual([]);
  });

  it('an EndpointSlice event passes no more files, charts and structures than docs/architecture.md states', () => {
    const { files } = walks.find(({ title }) => title === sliceWalk.title)!;
    const page = textOf('docs/architecture.md');
    const structures = [...page.matchAll(/^\d+\. `[^`]+`: structure (\d)/gm)].map(([, number]) => number);
    expect(files.length).toBeLessThanOrEqual(sliceWalk.maxFiles);
    expect(page).toContain(`\n${files.length} files, ${sliceWalk.charts} charts (`);
    expect(structures).toEqual(['1', '2', '3']);
    expect(structures).toHaveLength(sliceWalk.structures);
  });

  it('the check finds a walk with a missing, repeated or unconnected file', () => {
    const page = [
      '## Walks',
      '### A walk',
      '1. `src/a.ts` begins',
      '2. `src/b.ts` is imported',
      '3. `src/b.ts` again',
      '4. `src/none.ts` is gone',
      '5. `src/c.ts` is not connected',
      '6. `src/c2.ts` (port `src/port.ts`) is',
      '7. `src/d.ts` (port `src/port.ts`) is not',
      '8. `src/e.ts` (event `thing.happened`) is',
      '9. `src/f.ts` (event `thing.forgotten`) is not',
      '10. `src/h.ts` (base of `src/g.ts`) is',
      '11. `src/i.ts` (composed in `src/make-i.ts`) is not',
      '12. `src/j.ts` (composed in `src/plane.ts`) is',
      '## Next',
    ].join('\n');
    const texts: Readonly<Record<string, string>> = {
      'src/a.ts': "import './b.ts'; import './port.ts'; import './g.ts'; send('thing.happened')",
      'src/b.ts': 'b',
      'src/c.ts': 'c',
      'src/c2.ts': "import './port.ts'",
      'src/d.ts': 'd',
      'src/e.ts': "on('thing.happened')",
      'src/f.ts': "on('thing.forgotten')",
      'src/g.ts': "import './h.ts'; class G extends H {}",
      'src/h.ts': 'h',
      'src/i.ts': 'i',
      'src/make-i.ts': "import './i.ts'",
      'src/j.ts': 'j',
      'src/make-j.ts': "import './j.ts'",
      'src/plane.ts': "import './make-j.ts'; import './a.ts'",
    };
    expect(walksOf(page).flatMap((walk) => problemsOf(walk, (file) => texts[file] ?? ''))).toEqual([
      'A walk: src/b.ts is listed twice',
      'A walk: src/none.ts does not exist',
      'A walk: src/c.ts is not connected to a file above it',
      'A walk: src/d.ts is not connected to a file above it',
      'A walk: src/f.ts is not connected to a file above it',
      'A walk: src/i.ts is not connected to a file above it',
    ]);
  });
});
