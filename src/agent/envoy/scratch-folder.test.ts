import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { inScratchFolder } from './scratch-folder.ts';

function folder(): string {
  const made = temporaryFolder();
  onTestFinished(() => made[Symbol.dispose]());
  return made.path;
}

const flag = '--runDir';

test('what is done in a scratch folder leaves nothing behind, also when it fails', () => {
  const path = folder();
  const seen = inScratchFolder([{ path, flag }], (scratch) => {
    writeFileSync(join(scratch, 'file'), '');
    return scratch;
  });
  expect(seen.startsWith(join(path, '.scratch-'))).toBe(true);
  const fail = (): never => {
    throw new Error('EIO: i/o error, open');
  };
  expect(() => inScratchFolder([{ path, flag }], fail)).toThrow(
    codedError('FILE_UNWRITABLE', { path: '--runDir', got: path }),
  );
  expect(readdirSync(path)).toEqual([]);
});

test('a folder that has vanished is made again, with what was above it', () => {
  const parent = folder();
  const path = join(parent, 'a', 'b');
  expect(inScratchFolder([{ path, flag }], existsSync)).toBe(true);
  rmSync(join(parent, 'a'), { recursive: true });
  expect(inScratchFolder([{ path, flag }], existsSync)).toBe(true);
});

test('the next parent is taken where the first cannot be used; with none left, the first is told', () => {
  const parent = folder();
  writeFileSync(join(parent, 'file'), '');
  const unusable = { path: join(parent, 'file', 'below'), flag };
  const usable = { path: join(parent, 'fine'), flag: '--configPath' };
  expect(inScratchFolder([unusable, usable], (scratch) => scratch)).toContain(usable.path);
  expect(() => inScratchFolder([unusable, { path: '/proc', flag: 'TMPDIR' }], () => {})).toThrow(
    codedError('FILE_UNWRITABLE', { path: '--runDir', got: unusable.path }),
  );
});

test.each([
  ['in /proc', () => '/proc/no/such'],
  [
    'behind a link that leads nowhere',
    () => {
      const link = join(folder(), 'link');
      symlinkSync('/nowhere/at/all', link);
      return join(link, 'below');
    },
  ],
])('a folder %s is given up at once, not tried for ever', (_, path) => {
  expect(() => makeFolder(path())).toThrow(/ENOENT|ENOTDIR|EACCES|EPERM/);
});

test('a folder below a working directory that was removed is given up, too', () => {
  const gone = join(folder(), 'gone');
  mkdirSync(gone);
  const before = process.cwd();
  onTestFinished(() => process.chdir(before));
  process.chdir(gone);
  rmSync(gone, { recursive: true });
  expect(() => makeFolder('etc/istio')).toThrow('ENOENT');
  expect(() => inScratchFolder([{ path: 'etc/istio', flag }], () => {})).toThrow('etc/istio: ENOENT');
});
