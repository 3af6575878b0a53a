import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { silentLogger } from '../runtime/log.ts';
import { digestDirectories, waitForFiles } from './certificate-files.ts';
import { temporaryFolder } from './testing/real-envoy.ts';

function folder(): string {
  const made = temporaryFolder();
  onTestFinished(() => made[Symbol.dispose]());
  return made.path;
}

const sha256 = (...contents: string[]): string => createHash('sha256').update(contents.join('')).digest('hex');

describe('the digest', () => {
  test('is the hash of the files’ contents, by name and not by age', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'tls.key'), 'key');
    writeFileSync(join(directory, 'root.pem'), 'root');
    writeFileSync(join(directory, 'tls.crt'), 'chain');
    expect(await digestDirectories([directory])).toMatchObject({
      digest: sha256('root', 'chain', 'key'),
      files: ['root.pem', 'tls.crt', 'tls.key'].map((name) => join(directory, name)),
    });
  });

  test('is not changed by directories that are missing, files that cannot be read and files of other kinds', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'tls.crt'), 'chain');
    symlinkSync('nowhere', join(directory, 'broken.pem'));
    writeFileSync(join(directory, 'notes.txt'), 'text');
    mkdirSync(join(directory, 'folder.pem'));
    const { digest, files } = await digestDirectories([join(directory, 'missing'), directory]);
    expect(digest).toBe(sha256('chain'));
    expect(files).toHaveLength(1);
  });

  test('of nothing is the hash of nothing', async () => {
    expect((await digestDirectories([])).digest).toBe(sha256(''));
  });

  test('counts a directory that is named twice once', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'a.pem'), 'a');
    expect((await digestDirectories([directory, directory])).digest).toBe(sha256('a'));
  });

  test('follows the links of a Kubernetes volume and reads each file once', async () => {
    const directory = folder();
    mkdirSync(join(directory, '..2024_01_01'));
    writeFileSync(join(directory, '..2024_01_01', 'tls.crt'), 'one');
    symlinkSync('..2024_01_01', join(directory, '..data'));
    symlinkSync('..data/tls.crt', join(directory, 'tls.crt'));
    expect((await digestDirectories([directory])).digest).toBe(sha256('one'));
    mkdirSync(join(directory, '..2024_01_02'));
    writeFileSync(join(directory, '..2024_01_02', 'tls.crt'), 'two');
    symlinkSync('..2024_01_02', join(directory, '..data_tmp'));
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
    rmSync(join(directory, '..2024_01_01'), { recursive: true });
    expect((await digestDirectories([directory])).digest).toBe(sha256('two'));
  });
});

describe('waiting for files', () => {
  const wait = (files: string[], limitMs: number): Promise<{ missing: string[] }> => {
    const actor = createActor(waitForFiles(silentLogger), { input: { files, limitMs } }).start();
    return toPromise(actor);
  };

  test('ends as soon as all are there', async () => {
    const directory = folder();
    const [one, two] = [join(directory, 'one'), join(directory, 'two')];
    writeFileSync(one, '');
    const waiting = wait([one, two], 5_000);
    setTimeout(() => writeFileSync(two, ''), 50);
    expect(await waiting).toEqual({ missing: [] });
  });

  test('ends at the limit and tells what is missing', async () => {
    const missing = join(folder(), 'missing');
    const startedAt = performance.now();
    expect(await wait([missing, `${missing}-too`], 150)).toEqual({ missing: [missing, `${missing}-too`] });
    // At the same time, not one after the other.
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });

  test('ends at once for a file that will never be readable', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'file'), '');
    const below = join(directory, 'file', 'below');
    const startedAt = performance.now();
    expect(await wait([below], 60_000)).toEqual({ missing: [below] });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});
