import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isExecutable, notExecutableReason } from './executable.ts';

test('isExecutable accepts only an existing file that the current user can execute', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-executable-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = (name: string): string => join(folder, name);
  for (const name of ['program', 'text']) writeFileSync(path(name), '');
  chmodSync(path('program'), 0o755);
  mkdirSync(path('folder'));
  expect(['program', 'text', 'folder', 'absent'].map((name) => isExecutable(path(name)))).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(['program', 'text', 'folder', 'absent'].map((name) => notExecutableReason(path(name)))).toEqual([
    undefined,
    'is not an executable file',
    'is not an executable file',
    'does not exist',
  ]);
});
