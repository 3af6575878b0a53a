import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { withScratchFolder } from './scratch-folder.ts';

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

const flag = '--runDir';

test('removes the temporary folder after success and failure', () => {
  const path = folder();
  const scratchFolder = withScratchFolder([{ path, flag }], (scratch) => {
    writeFileSync(join(scratch, 'file'), '');
    return scratch;
  });
  expect(scratchFolder.startsWith(join(path, '.scratch-'))).toBe(true);
  const fail = (): never => {
    throw new Error('EIO: i/o error, open');
  };
  expect(() => withScratchFolder([{ path, flag }], fail)).toThrow(
    codedError('FILE_UNWRITABLE', { path: '--runDir', got: path }),
  );
  expect(readdirSync(path)).toEqual([]);
});

test('recreates a missing parent folder with its own parents', () => {
  const parent = folder();
  const path = join(parent, 'a', 'b');
  expect(withScratchFolder([{ path, flag }], existsSync)).toBe(true);
  rmSync(join(parent, 'a'), { recursive: true });
  expect(withScratchFolder([{ path, flag }], existsSync)).toBe(true);
});

test('uses the next parent folder if the first is unusable, and reports the first if all are unusable', () => {
  const parent = folder();
  writeFileSync(join(parent, 'file'), '');
  const unusable = { path: join(parent, 'file', 'below'), flag };
  const usable = { path: join(parent, 'fine'), flag: '--configPath' };
  expect(withScratchFolder([unusable, usable], (scratch) => scratch)).toContain(usable.path);
  expect(() => withScratchFolder([unusable, { path: '/proc', flag: 'TMPDIR' }], () => {})).toThrow(
    codedError('FILE_UNWRITABLE', { path: '--runDir', got: unusable.path }),
  );
});

test.each([
  ['in /proc', () => '/proc/no/such'],
  [
    'behind a dangling symbolic link',
    () => {
      const link = join(folder(), 'link');
      symlinkSync('/nowhere/at/all', link);
      return join(link, 'below');
    },
  ],
])('fails immediately if the folder is %s', (_, path) => {
  expect(() => ensureDirectory(path())).toThrow(/ENOENT|ENOTDIR|EACCES|EPERM/);
});

test('fails for a relative folder if the working directory no longer exists', () => {
  const removedFolder = join(folder(), 'gone');
  mkdirSync(removedFolder);
  const workingDirectory = process.cwd();
  onTestFinished(() => process.chdir(workingDirectory));
  process.chdir(removedFolder);
  rmSync(removedFolder, { recursive: true });
  expect(() => ensureDirectory('etc/istio')).toThrow('ENOENT');
  expect(() => withScratchFolder([{ path: 'etc/istio', flag }], () => {})).toThrow('etc/istio: ENOENT');
});
