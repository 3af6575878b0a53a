import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SwitchedMount, switchedMount } from '../../../test/harness/switched-mount.ts';
import { readConsistently, readConsistentlySync } from './read-together.ts';

let folder: string;
let mount: SwitchedMount | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-together-'));
});

afterEach(async () => {
  await mount?.stop();
  mount = undefined;
  rmSync(folder, { recursive: true });
});

const versions = Array.from({ length: 50 }, (_, version) => ({ a: `${version}`, b: `${version}` }));

const files = (): [string, string] => [join(folder, 'a'), join(folder, 'b')];

describe('readConsistently', () => {
  it('returns files of a single version while Kubernetes switches them thousands of times', async () => {
    mount = await switchedMount(folder, versions);
    const [a, b] = files();
    const seenTexts = new Set<string>();
    // Another process switches the files; on a busy machine it may pause for many reads.
    for (let i = 0; i < 2_000 || (seenTexts.size <= 20 && i < 200_000); i++) {
      const [first, second] = readConsistentlySync((at) => [readFileSync(at(a), 'utf8'), readFileSync(at(b), 'utf8')]);
      expect(second).toBe(first);
      seenTexts.add(first);
    }
    expect(seenTexts.size).toBeGreaterThan(20);
  });

  it('returns files of a single version to asynchronous readers', async () => {
    mount = await switchedMount(folder, versions);
    const [a, b] = files();
    for (let i = 0; i < 50; i++) {
      const read = readConsistently(async (at) => [
        await readFile(await at(a), 'utf8'),
        await readFile(await at(b), 'utf8'),
      ]);
      const [first, second] = await read.catch((error: NodeJS.ErrnoException) => [error.code, error.code]);
      expect(second).toBe(first);
    }
  });

  it('follows links of any kind, and throws the file system’s error for a missing file', async () => {
    mkdirSync(join(folder, 'x/y'), { recursive: true });
    writeFileSync(join(folder, 'x/y/file'), 'content');
    symlinkSync(join(folder, 'x'), join(folder, 'absolute'));
    symlinkSync('absolute/y/../y/./file', join(folder, 'link'));
    symlinkSync('loop', join(folder, 'loop'));
    const path = join(folder, 'link');
    expect(readConsistentlySync((at) => readFileSync(at(path), 'utf8'))).toBe('content');
    expect(await readConsistently(async (at) => readFile(await at(path), 'utf8'))).toBe('content');
    expect(() => readConsistentlySync((at) => readFileSync(at(join(folder, 'none'))))).toThrow('ENOENT');
    expect(() => readConsistentlySync((at) => readFileSync(at(join(folder, 'loop'))))).toThrow('ELOOP');
    expect(readConsistentlySync((at) => at('/proc/self/exe'))).toBe('/proc/self/exe');
  });

  it('repeats the read until no link changes during it', () => {
    let version = 0;
    const change = (): void => {
      symlinkSync(`${++version}`, join(folder, 'new'));
      renameSync(join(folder, 'new'), join(folder, 'link'));
    };
    change();
    const reads: string[] = [];
    const last = readConsistentlySync((at) => {
      reads.push(at(join(folder, 'link')));
      if (version < 4) change();
      return reads.at(-1);
    });
    expect(reads).toEqual(['1', '2', '3', '4'].map((name) => join(folder, name)));
    expect(last).toBe(join(folder, '4'));
  });
});
