/** Tests the limits of configuration directories. Content beyond a limit is rejected without affecting other content. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { ConfigDirectory, type DirectoryReading } from './config-directory.ts';
import { defaultConfigLimits } from './config-limits.ts';
import { watchDirectory } from './directory-watch.ts';

let parent: string;
let root: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'chartpilot-limits-'));
  root = join(parent, 'mesh');
  mkdirSync(root);
});

afterEach(() => rmSync(parent, { recursive: true, force: true }));

function write(name: string, text: string): void {
  mkdirSync(dirname(join(root, name)), { recursive: true });
  writeFileSync(join(root, name), text);
}

const entry = (name: string, address = '10.0.0.1'): string =>
  `apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: ${name}, namespace: shop}\nspec: {address: ${address}}\n`;

const namesIn = (directory: ConfigDirectory): string[] =>
  [...directory.snapshot.byKey.values()].map(({ name }) => name).sort();

async function read(
  directory: ConfigDirectory,
  ...paths: string[]
): Promise<Extract<DirectoryReading, { outcome: 'read' }>> {
  const directoryReading = await directory.read(paths.map((path) => join(root, path)));
  if (directoryReading.outcome !== 'read') throw new Error(`the directory is ${directoryReading.outcome}`);
  return directoryReading;
}

const limitedDirectory = (limits: Partial<typeof defaultConfigLimits>): ConfigDirectory =>
  new ConfigDirectory(root, { ...defaultConfigLimits, ...limits });

describe('a configuration file that is too large', () => {
  it('is rejected with its size and a remedy, and its last valid content still applies', async () => {
    write('a.yaml', entry('a'));
    write('b.yaml', entry('b'));
    const directory = limitedDirectory({ maxFileBytes: 1_000 });
    await read(directory);
    appendFileSync(join(root, 'a.yaml'), `# ${'x'.repeat(2_000)}\n`);
    write('b.yaml', entry('b2'));
    const { problems } = await read(directory);
    expect(problems).toMatchObject([{ severity: 'error', place: { file: join(root, 'a.yaml') } }]);
    expect(problems[0]?.message).toMatch(/^has 2\d{3} bytes, the limit .* is 1000: .* PILOT_CONFIG_MAX_FILE_BYTES$/);
    expect(namesIn(directory)).toEqual(['a', 'b2']);
    expect([...directory.unreadable.keys()]).toEqual([join(root, 'a.yaml')]);
    write('a.yaml', entry('a3'));
    expect(await read(directory, 'a.yaml')).toMatchObject({ recovered: [join(root, 'a.yaml')] });
    expect(namesIn(directory)).toEqual(['a3', 'b2']);
  });

  it('is never read completely, and does not exhaust the memory', async () => {
    write('a.yaml', '');
    truncateSync(join(root, 'a.yaml'), 2 ** 40);
    const { problems } = await read(limitedDirectory({}));
    expect(problems[0]?.message).toMatch(/1099511627776 bytes, the limit .* is 8388608:/);
  });

  it('is rejected while the total exceeds the limit, and accepted when another file is removed', async () => {
    for (const name of ['a', 'b', 'c']) write(`${name}.yaml`, `${entry(name)}# ${'x'.repeat(500)}\n`);
    const directory = limitedDirectory({ maxBytes: 1_400 });
    const { problems } = await read(directory);
    expect(problems).toMatchObject([{ place: { file: join(root, 'c.yaml') } }]);
    expect(problems[0]?.message).toContain('PILOT_CONFIG_MAX_BYTES');
    expect(namesIn(directory)).toEqual(['a', 'b']);
    rmSync(join(root, 'a.yaml'));
    await read(directory, 'a.yaml');
    await read(directory);
    expect(namesIn(directory)).toEqual(['b', 'c']);
  });
});

describe('a path that is not a regular file', () => {
  it.each([
    ['a named pipe', (path: string) => void execFileSync('mkfifo', [path])],
    ['one of a kernel file system', (path: string) => symlinkSync('/proc/kmsg', path)],
    ['a device', (path: string) => symlinkSync('/dev/zero', path)],
  ])('is not read if it is %s', async (kind, createFile) => {
    write('a.yaml', entry('a'));
    const directory = limitedDirectory({});
    await read(directory);
    rmSync(join(root, 'a.yaml'));
    createFile(join(root, 'a.yaml'));
    expect((await read(directory)).problems[0]?.message).toContain(`must be a regular file, is ${kind}`);
    expect(namesIn(directory)).toEqual(['a']);
  });
});

describe('a directory tree that is too large', () => {
  const maxEntries = 200;

  function makeTree(): string {
    const tree = join(parent, 'elsewhere');
    for (let i = 0; i < 3 * maxEntries; i++) {
      mkdirSync(join(tree, String(i % 7)), { recursive: true });
      writeFileSync(join(tree, String(i % 7), `${i}.txt`), '');
    }
    writeFileSync(join(tree, '0/found.yaml'), entry('found'));
    return tree;
  }

  it('is reported at the link to it, and all other files are read', async () => {
    write('a.yaml', entry('a'));
    symlinkSync(makeTree(), join(root, '0-first'));
    const directory = limitedDirectory({ maxEntries });
    const { problems } = await read(directory);
    expect(problems).toMatchObject([{ severity: 'error', place: { file: join(root, '0-first') } }]);
    expect(problems[0]?.message).toContain('PILOT_CONFIG_MAX_ENTRIES');
    expect(namesIn(directory)).toEqual(['a']);
    write('a.yaml', entry('b'));
    await read(directory, 'a.yaml');
    expect(namesIn(directory)).toEqual(['b']);
    rmSync(join(root, '0-first'));
    expect(await read(directory, '0-first')).toMatchObject({ recovered: [join(root, '0-first')] });
  });

  /** Removes directories until the tree is within the limit. */
  function thinOut(tree: string): void {
    for (let i = 1; i < 7; i++)
      for (const name of readdirSync(join(tree, String(i)))) rmSync(join(tree, String(i), name));
  }

  it('is not walked again by full reads until its root changes', async () => {
    write('a.yaml', entry('a'));
    const tree = makeTree();
    symlinkSync(tree, join(root, '0-first'));
    const directory = limitedDirectory({ maxEntries });
    await read(directory);
    thinOut(tree);
    write('a.yaml', entry('b'));
    await read(directory);
    // Another walk would have found that the tree is now within the limit.
    expect(namesIn(directory)).toEqual(['b']);
    expect([...directory.unreadable.keys()]).toEqual([join(root, '0-first')]);
    writeFileSync(join(tree, 'new.txt'), '');
    expect(await read(directory)).toMatchObject({ recovered: [join(root, '0-first')] });
    expect(namesIn(directory)).toEqual(['b', 'found']);
  });

  it('is walked again when the link changes to another tree', async () => {
    const tree = makeTree();
    symlinkSync(tree, join(root, 'a'));
    const directory = limitedDirectory({ maxEntries });
    await read(directory);
    rmSync(join(root, 'a'));
    mkdirSync(join(parent, 'other'));
    writeFileSync(join(parent, 'other/found.yaml'), entry('other'));
    symlinkSync('../other', join(root, 'a'));
    await read(directory, 'a');
    expect(namesIn(directory)).toEqual(['other']);
  });

  it('is walked again every minute', async () => {
    const tree = makeTree();
    symlinkSync(tree, join(root, 'a'));
    const directory = limitedDirectory({ maxEntries });
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const reportedPaths: string[] = [];
      const stop = directory.watch({ changed: (path) => void reportedPaths.push(path), failed: () => {} });
      await read(directory);
      thinOut(tree);
      await read(directory);
      expect(namesIn(directory)).toEqual([]);
      vi.advanceTimersByTime(60_000);
      stop();
      expect(reportedPaths).toContain(root);
      await directory.read([root]);
      expect(namesIn(directory)).toEqual(['found']);
    } finally {
      vi.useRealTimers();
    }
  });

  it('does not cause a full read when its content changes', async () => {
    for (const name of ['b', 'c']) write(`${name}.yaml`, entry(name));
    const tree = makeTree();
    symlinkSync(tree, join(root, 'a'));
    const directory = limitedDirectory({ maxEntries });
    await read(directory);
    writeFileSync(join(tree, '3/new.txt'), '');
    for (const name of ['b', 'c']) write(`${name}.yaml`, entry(`${name}2`));
    await read(directory, 'b.yaml', 'a/3/new.txt', 'a/3');
    expect(namesIn(directory)).toEqual(['b2', 'c']);
  });

  it('is walked and read when other trees that exhausted the limit have shrunk', async () => {
    write('z/a.yaml', entry('a'));
    for (const name of ['b', 'c', 'd']) for (let i = 0; i <= maxEntries; i++) write(`${name}/${i}.txt`, '');
    const directory = limitedDirectory({ maxEntries });
    await read(directory);
    await read(directory);
    expect(namesIn(directory)).toEqual(['a']);
    expect([...directory.unreadable.keys()].sort()).toEqual(['b', 'c', 'd'].map((name) => join(root, name)));
  });

  it('keeps its active objects when it grows beyond the limit', async () => {
    write('a.yaml', entry('a'));
    write('sub/b.yaml', entry('b'));
    const directory = limitedDirectory({ maxEntries });
    await read(directory);
    for (let i = 0; i < maxEntries; i++) write(`sub/${i}.txt`, '');
    expect((await read(directory)).problems).toMatchObject([{ place: { file: join(root, 'sub') } }]);
    expect(namesIn(directory)).toEqual(['a', 'b']);
    for (let i = 0; i < maxEntries; i++) write(`${i}.txt`, '');
    await expect(directory.read()).rejects.toThrow('PILOT_CONFIG_MAX_ENTRIES');
    expect(namesIn(directory)).toEqual(['a', 'b']);
  });

  it('counts against one total limit, even if it is linked many times or links to itself', async () => {
    // Each directory has two links to the next one, which results in 2^40 paths.
    for (let i = 0; i < 40; i++) {
      write(`..hidden/${i}/a.txt`, '');
      for (const name of ['left', 'right'])
        symlinkSync(join(root, `..hidden/${i + 1}`), join(root, `..hidden/${i}/${name}`));
    }
    write('a.yaml', entry('a'));
    symlinkSync('..hidden/0', join(root, 'b'));
    symlinkSync('..hidden/0', join(root, 'c'));
    const directory = limitedDirectory({ maxEntries });
    expect((await read(directory)).problems.length).toBeGreaterThan(0);
    expect(namesIn(directory)).toEqual(['a']);
  });

  it('is not walked if it is in a kernel file system', async () => {
    write('a.yaml', entry('a'));
    symlinkSync('/proc', join(root, 'proc'));
    const directory = limitedDirectory({});
    expect((await read(directory)).problems).toMatchObject([
      {
        place: { file: join(root, 'proc') },
        message: expect.stringMatching(/kernel file system .*: it is ignored, and its last valid content applies$/),
      },
    ]);
    expect(namesIn(directory)).toEqual(['a']);
  });

  it('is not walked deeper than 32 directories', async () => {
    write('a.yaml', entry('a'));
    write(`${'d/'.repeat(31)}b.yaml`, entry('b'));
    write(`${'d/'.repeat(40)}c.yaml`, entry('c'));
    const directory = limitedDirectory({});
    expect((await read(directory)).problems).toMatchObject([
      {
        message: expect.stringMatching(
          /nested in 32 directories.*: it is ignored, and its last valid content applies$/,
        ),
      },
    ]);
    expect(namesIn(directory)).toEqual(['a', 'b']);
  });

  it('is watched up to the limit and causes a warning, and other trees are watched completely', async () => {
    write('a.yaml', entry('a'));
    symlinkSync(makeTree(), join(root, '0-first'));
    const [reportedPaths, failures]: [Set<string>, unknown[]] = [new Set(), []];
    const stop = watchDirectory(
      root,
      { changed: (path) => void reportedPaths.add(path), failed: (error) => void failures.push(error) },
      { ...defaultConfigLimits, maxEntries },
    );
    await eventually('it is reported', () => failures.length > 0);
    write('a.yaml', entry('b'));
    await eventually('the change is seen', () => reportedPaths.has(join(root, 'a.yaml')));
    stop();
    expect(failures.map(String)).toEqual([expect.stringContaining('more than 200 entries')]);
  });
});

describe('a single changed file', () => {
  it('is the only file read, even if the directory contains links and unreadable files', async () => {
    for (const name of ['a', 'b', 'c']) write(`${name}.yaml`, entry(name));
    writeFileSync(join(parent, 'linked.yaml'), entry('linked'));
    symlinkSync('../linked.yaml', join(root, 'linked.yaml'));
    write('large.yaml', `# ${'x'.repeat(2_000)}`);
    symlinkSync('/dev/zero', join(root, 'zero.yaml'));
    const directory = limitedDirectory({ maxFileBytes: 1_000 });
    await read(directory);
    write('b.yaml', entry('b2'));
    write('c.yaml', entry('c2'));
    // Reading all files would also find the other file.
    await read(directory, 'b.yaml');
    expect(namesIn(directory)).toEqual(['a', 'b2', 'c', 'linked']);
    await read(directory);
    expect(namesIn(directory)).toEqual(['a', 'b2', 'c2', 'linked']);
  });

  it('is reported together with its directory if too many files change at the same time', async () => {
    const reportedPaths: string[] = [];
    const stop = watchDirectory(root, { changed: (path) => void reportedPaths.push(path), failed: () => {} });
    for (let i = 0; i < 2_000; i++) write(`${i}.yaml`, entry(`a${i}`));
    await eventually('it is reported', () => reportedPaths.includes(root));
    stop();
    expect(reportedPaths.length).toBeLessThan(300);
  });

  it('is detected in a large directory that is moved into the watched directory', async () => {
    for (let i = 0; i < 500; i++) write(`../stage/${i % 50}/${i}.yaml`, entry(`a${i}`));
    const reportedPaths = new Set<string>();
    const stop = watchDirectory(root, { changed: (path) => void reportedPaths.add(path), failed: () => {} });
    renameSync(join(parent, 'stage'), join(root, 'moved'));
    await eventually('the move is seen', () => reportedPaths.has(join(root, 'moved')));
    await eventually('what changes in it is seen', () => {
      // The directory is reported until it is completely watched.
      write('moved/49/new.yaml', entry('new'));
      return reportedPaths.has(join(root, 'moved/49/new.yaml'));
    });
    stop();
  });
});
