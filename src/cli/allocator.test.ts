import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { packageRoot } from '../runtime/package-root.ts';

const loaders = { x86_64: 'lib64/ld-linux-x86-64.so.2', aarch64: 'lib/ld-linux-aarch64.so.1' };
const libraryOf = (machine: string): string => `usr/lib/${machine}-linux-gnu/libjemalloc.so.2`;

/** @param files of the root. @returns LD_PRELOAD, without the root, and MALLOC_CONF */
function chosenAllocator(files: readonly string[], env: NodeJS.ProcessEnv = {}): [string, string] {
  const root = mkdtempSync(join(tmpdir(), 'cp-allocator-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const path of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), '');
  }
  // The shell runs no program after the selection, because the file is not a real library.
  const script = `. "${packageRoot()}/bin/allocator.sh"; allocator "$1"; echo "\${LD_PRELOAD-}"; echo "\${MALLOC_CONF-}"`;
  const output = execFileSync('sh', ['-euc', script, 'sh', root], {
    env: { PATH: process.env.PATH, ...env },
    encoding: 'utf8',
  });
  const [library = '', settings = ''] = output.split('\n');
  return [library.replace(`${root}/`, ''), settings];
}

it.each(Object.entries(loaders))('allocator.sh selects the installed jemalloc: %s', (machine, loader) => {
  const [library, settings] = chosenAllocator([loader, ...Object.keys(loaders).map(libraryOf)]);
  expect(library).toBe(libraryOf(machine));
  expect(settings).toContain('background_thread:true');
});

it('allocator.sh selects the system allocator if jemalloc is missing or built for another processor', () => {
  expect(chosenAllocator([])).toEqual(['', '']);
  expect(chosenAllocator([loaders.x86_64])).toEqual(['', '']);
  expect(chosenAllocator([loaders.x86_64, libraryOf('aarch64')])).toEqual(['', '']);
});

it('allocator.sh keeps LD_PRELOAD and MALLOC_CONF of the environment, even if LD_PRELOAD is empty', () => {
  const files = [loaders.x86_64, libraryOf('x86_64')];
  expect(chosenAllocator(files, { LD_PRELOAD: '' })).toEqual(['', '']);
  expect(chosenAllocator(files, { MALLOC_CONF: 'narenas:1' })).toEqual([libraryOf('x86_64'), 'narenas:1']);
});
