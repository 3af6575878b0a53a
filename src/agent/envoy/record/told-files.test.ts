import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../../test/fixtures/real-envoy.ts';
import { ToldFiles } from './told-files.ts';

function folder(): string {
  const made = temporaryFolder();
  onTestFinished(() => made[Symbol.dispose]());
  return made.path;
}

test('returns the last stored data to the next agent, in a file that only its user may read', async () => {
  const path = folder();
  const told = new ToldFiles(path);
  for (const word of ['one', 'two', 'three']) told.keep('name-table', Buffer.from(word));
  await told.settled();
  expect(String(new ToldFiles(path).read('name-table'))).toBe('three');
  expect(readdirSync(path)).toEqual(['name-table']);
  expect(statSync(join(path, 'name-table')).mode & 0o777).toBe(0o600);
});

test('removes the outdated file if a write fails', async () => {
  const path = folder();
  const told = new ToldFiles(path);
  told.keep('name-table', Buffer.from('one'));
  await told.settled();
  mkdirSync(join(path, 'name-table.new'));
  told.keep('name-table', Buffer.from('two'));
  await told.settled();
  expect(told.read('name-table')).toBeUndefined();
});
