import { mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { isBuilt, noteBuild } from './build-stamp.ts';

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
  noteBuild(root);
});

test('an unchanged build is up to date, and newer than every source', () => {
  const long = new Date(0);
  for (const name of ['pilot-agent.mjs', 'THIRD-PARTY.txt']) utimesSync(join(root, 'dist', name), long, long);
  expect(isBuilt(root)).toBe(true);
  for (const name of ['pilot-agent.mjs', 'THIRD-PARTY.txt']) {
    expect(statSync(join(root, 'dist', name)).mtimeMs).toBeGreaterThanOrEqual(
      statSync(join(root, 'src/cli/a.ts')).mtimeMs,
    );
  }
});

test("Node's compile cache is ignored", () => {
  write('dist/compile-cache/v24/one', 'kept');
  expect(isBuilt(root)).toBe(true);
});

test.each([
  ['a source is another', 'src/cli/a.ts', 'export default 1;'],
  ['a source has come', 'src/b.ts', ''],
  ['a chart is another', 'machines/a.ts', ''],
  ['the page is another', 'visualize/a.ts', ''],
  ['a wrapper is another', 'bin/a.ts', ''],
  ['the packages are others', 'package-lock.json', '{"a":1}'],
  ['other packages are installed', 'node_modules/.package-lock.json', '{"a":1}'],
  ['a part of what was built is another', 'dist/visualize/page.js', 'half'],
])('a build is outdated if %s', (_, file, text) => {
  write(file, text);
  expect(isBuilt(root)).toBe(false);
});

test.each(['dist/visualize/page.js', 'dist', 'src/cli/a.ts', 'node_modules/.cache'])(
  'a build is outdated if %s was removed',
  (place) => {
    rmSync(join(root, place), { recursive: true });
    expect(isBuilt(root)).toBe(false);
  },
);
