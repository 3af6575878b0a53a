import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openFilesLimit } from './open-files.ts';

const limitsFile = (line: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-limits-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'limits');
  writeFileSync(file, `Limit                     Soft Limit           Hard Limit           Units     \n${line}\n`);
  return file;
};

test('openFilesLimit returns the soft limit, or undefined if the system does not report it', () => {
  expect(
    openFilesLimit(limitsFile('Max open files            1024                 4096                 files     ')),
  ).toBe(1_024);
  expect(
    openFilesLimit(limitsFile('Max open files            unlimited            unlimited            files     ')),
  ).toBeUndefined();
  expect(
    openFilesLimit(limitsFile('Max pending signals       7                    7                    signals   ')),
  ).toBeUndefined();
  expect(openFilesLimit('/nowhere/limits')).toBeUndefined();
  expect(openFilesLimit()).toBeGreaterThan(10);
});
