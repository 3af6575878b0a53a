import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../../test/fixtures/real-envoy.ts';
import { StoredFiles } from './stored-files.ts';

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

test('returns the last stored data to the next agent, from a file that only its user can read', async () => {
  const path = folder();
  const stored = new StoredFiles(path);
  for (const content of ['one', 'two', 'three']) stored.store('name-table', Buffer.from(content));
  await stored.waitUntilSettled();
  expect(String(new StoredFiles(path).read('name-table'))).toBe('three');
  expect(readdirSync(path)).toEqual(['name-table']);
  expect(statSync(join(path, 'name-table')).mode & 0o777).toBe(0o600);
});

test('removes the outdated file if writing fails', async () => {
  const path = folder();
  const stored = new StoredFiles(path);
  stored.store('name-table', Buffer.from('one'));
  await stored.waitUntilSettled();
  mkdirSync(join(path, 'name-table.new'));
  stored.store('name-table', Buffer.from('two'));
  await stored.waitUntilSettled();
  expect(stored.read('name-table')).toBeUndefined();
});
