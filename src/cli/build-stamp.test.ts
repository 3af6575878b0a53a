import { mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { isBuilt, recordBuild } from './build-stamp.ts';

let root: string;

function write(file: string, text: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-stamp-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const folder of ['src/cli', 'machines', 'visualize', 'bin']) write(`${folder}/a.ts`, 'export {};');
  for (const file of ['package.json', 'package-lock.json', 'node_modules/.package-lock.json']) write(file, '{}');
  for (const name of ['pilot-agent.mjs', 'THIRD-PARTY.txt', 'visualize/page.js']) write(`dist/${name}`, 'built');
  recordBuild(root);
});

test('an unchanged build is up to date, and newer than every source', () => {
  const oldDate = new Date(0);
  for (const name of ['pilot-agent.mjs', 'THIRD-PARTY.txt']) utimesSync(join(root, 'dist', name), oldDate, oldDate);
  expect(isBuilt(root)).toBe(true);
  for (const name of ['pilot-agent.mjs', 'THIRD-PARTY.txt']) {
    expect(statSync(join(root, 'dist', name)).mtimeMs).toBeGreaterThanOrEqual(
      statSync(join(root, 'src/cli/a.ts')).mtimeMs,
    );
  }
});

test("a build stays up to date when Node's compile cache changes", () => {
  write('dist/compile-cache/v24/one', 'kept');
  expect(isBuilt(root)).toBe(true);
});

test.each([
  ['the content of a source changed', 'src/cli/a.ts', 'export default 1;'],
  ['a source was added', 'src/b.ts', ''],
  ['a chart changed', 'machines/a.ts', ''],
  ['the page changed', 'visualize/a.ts', ''],
  ['a wrapper script changed', 'bin/a.ts', ''],
  ['the lock file changed', 'package-lock.json', '{"a":1}'],
  ['other packages are installed', 'node_modules/.package-lock.json', '{"a":1}'],
  ['a built file changed', 'dist/visualize/page.js', 'half'],
])('a build is outdated if %s', (_, file, text) => {
  write(file, text);
  expect(isBuilt(root)).toBe(false);
});

test.each(['dist/visualize/page.js', 'dist', 'src/cli/a.ts', 'node_modules/.cache'])(
  'a build is outdated if %s was removed',
  (removedPath) => {
    rmSync(join(root, removedPath), { recursive: true });
    expect(isBuilt(root)).toBe(false);
  },
);
