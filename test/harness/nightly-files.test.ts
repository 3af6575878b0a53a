import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { nightlyFiles } from './nightly-files.ts';

const exists = (file: string): boolean => existsSync(join(packageRoot(), file));

test('each file of the nightly run exists, and is covered by existing files that npm test runs', () => {
  const names = new Set(nightlyFiles.map(({ file }) => file));
  const problems = nightlyFiles.flatMap(({ file, coveredBy }) => [
    ...(exists(file) ? [] : [`${file} does not exist`]),
    ...(coveredBy.length > 0 ? [] : [`${file} is not covered`]),
    ...coveredBy.filter((one) => !exists(one) || names.has(one)).map((one) => `npm test does not run ${one}`),
  ]);
  expect(problems).toEqual([]);
});
