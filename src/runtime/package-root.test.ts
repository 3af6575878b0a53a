import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from './package-root.ts';

test('the package root is the directory that contains package.json and machines/', () => {
  expect(existsSync(join(packageRoot(), 'package.json'))).toBe(true);
  expect(existsSync(join(packageRoot(), 'machines'))).toBe(true);
});

test('the package root does not depend on the working directory', () => {
  expect(packageRoot()).toBe(join(import.meta.dirname, '../..'));
});
