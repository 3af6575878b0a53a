/** Tests watch and reader on a real file system, from a file change until it applies. */
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import { msWithoutQueueing } from '../../../../test/harness/without-queueing.ts';
import type { StopWatching } from '../../../runtime/files/file-watch.ts';
import { ConfigDirectory } from './config-directory.ts';
import { defaultConfigLimits } from './config-limits.ts';
import { watchDirectory } from './directory-watch.ts';

let parent: string;
let root: string;
let directory: ConfigDirectory;
let stop: StopWatching;
let reportedPaths: string[];
let readings: number;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'chartpilot-directory-watch-'));
  root = join(parent, 'mesh');
  mkdirSync(root);
});

afterEach(() => {
  stop();
  rmSync(parent, { recursive: true, force: true });
});

/** Starts like the chart: waits 20 ms after the first reported path, then reads the batch. */
function startWatch(): void {
  directory = new ConfigDirectory(root);
  reportedPaths = [];
  readings = 0;
  let duePaths: string[] = [];
  let isReading = false;
  const read = async (): Promise<void> => {
    if (isReading || duePaths.length === 0) return;
    isReading = true;
    const paths = duePaths;
    duePaths = [];
    await directory.read(paths);
    readings++;
    isReading = false;
    void read();
  };
  stop = watchDirectory(root, {
    changed: (path) => {
      reportedPaths.push(path);
      if (duePaths.length === 0) setTimeout(read, 20);
      duePaths.push(path);
    },
    failed: (error) => expect.fail(String(error)),
  });
}

const entry = (address: string, name = 'a'): string =>
  `apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: ${name}, namespace: shop}\nspec: {address: ${address}}\n`;

function write(name: string, text: string): void {
  mkdirSync(dirname(join(root, name)), { recursive: true });
  writeFileSync(join(root, name), text);
}

const address = (name = 'a'): unknown =>
  (directory.snapshot.byKey.get(`WorkloadEntry/shop/${name}`)?.spec as { address?: string } | undefined)?.address;

async function waitUntil(holds: () => boolean): Promise<void> {
  const start = performance.now();
  while (!holds()) {
    // Safety limit for a machine that runs ten other tasks.
    if (performance.now() - start > 90_000) throw new Error('it never came to that');
    await sleep(1);
  }
}

/** Starts the watch before the first read, like the chart. */
async function startAndRead(): Promise<void> {
  startWatch();
  await directory.read();
}

/** Switches the mount atomically, like Kubernetes. */
function mount(version: string, text: string): void {
  write(`..${version}/a.yaml`, text);
  symlinkSync(`..${version}`, join(root, '..data_tmp'));
  renameSync(join(root, '..data_tmp'), join(root, '..data'));
}

describe('the watch of a changed file', () => {
  it('reports only the changed file, which applies immediately', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await startAndRead();
    const took: number[] = [];
    for (let i = 2; i < 12; i++) {
      reportedPaths.length = 0;
      write('a.yaml', entry(`10.0.0.${i}`));
      took.push(await msWithoutQueueing([process.pid], () => waitUntil(() => address() === `10.0.0.${i}`)));
      expect(new Set(reportedPaths)).toEqual(new Set([join(root, 'a.yaml')]));
    }
    // The time includes up to 20 ms of batching. The median tolerates single delays on a busy machine.
    expect(took.sort((a, b) => a - b)[1]).toBeLessThan(60);
  });

  it('detects a change shortly after another one', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await startAndRead();
    for (let i = 2; i < 30; i++) {
      write('a.yaml', entry(`10.0.0.${i}`));
      await sleep(i);
    }
    await waitUntil(() => address() === '10.0.0.29');
  });

  it('detects a file that is replaced, appended to, or removed', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await startAndRead();
    write('.a.yaml.tmp', entry('10.0.0.2'));
    renameSync(join(root, '.a.yaml.tmp'), join(root, 'a.yaml'));
    await waitUntil(() => address() === '10.0.0.2');
    appendFileSync(join(root, 'a.yaml'), `---\n${entry('10.0.0.3', 'b')}`);
    await waitUntil(() => address('b') === '10.0.0.3');
    rmSync(join(root, 'a.yaml'));
    await waitUntil(() => address() === undefined);
  });

  it('ignores temporary files of editors', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await startAndRead();
    const text = entry('10.0.0.9', 'temporary');
    for (const name of ['.a.yaml.swp', '4913', 'a.yaml~', '#a.yaml#', '.#a.yaml']) write(name, text);
    renameSync(join(root, 'a.yaml'), join(root, 'a.yaml~'));
    write('a.yaml', entry('10.0.0.2'));
    rmSync(join(root, 'a.yaml~'));
    await waitUntil(() => address() === '10.0.0.2');
    expect(directory.snapshot.byKey.size).toBe(1);
  });
});

describe('the watch of directories and links', () => {
  it('detects added and removed directories at any depth', async () => {
    await startAndRead();
    write('shop/routes/a.yaml', entry('10.0.0.1'));
    await waitUntil(() => address() === '10.0.0.1');
    write('shop/routes/a.yaml', entry('10.0.0.2'));
    await waitUntil(() => address() === '10.0.0.2');
    renameSync(join(root, 'shop'), join(root, 'store'));
    write('store/routes/a.yaml', entry('10.0.0.3'));
    await waitUntil(() => address() === '10.0.0.3');
    rmSync(join(root, 'store'), { recursive: true });
    await waitUntil(() => address() === undefined);
    write('store/routes/a.yaml', entry('10.0.0.4'));
    await waitUntil(() => address() === '10.0.0.4');
  });

  it('detects a directory that replaces a file, and vice versa', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await startAndRead();
    rmSync(join(root, 'a.yaml'));
    write('a.yaml/b.yaml', entry('10.0.0.2', 'b'));
    await waitUntil(() => address() === undefined && address('b') === '10.0.0.2');
    write('a.yaml/b.yaml', entry('10.0.0.3', 'b'));
    await waitUntil(() => address('b') === '10.0.0.3');
    rmSync(join(root, 'a.yaml'), { recursive: true });
    write('a.yaml', entry('10.0.0.4'));
    await waitUntil(() => address('b') === undefined && address() === '10.0.0.4');
  });

  it('detects that a Kubernetes mount is switched', async () => {
    mount('1', entry('10.0.0.1'));
    symlinkSync('..data/a.yaml', join(root, 'a.yaml'));
    await startAndRead();
    expect(address()).toBe('10.0.0.1');
    for (let i = 2; i < 5; i++) {
      mount(String(i), entry(`10.0.0.${i}`));
      rmSync(join(root, `..${i - 1}`), { recursive: true });
      await waitUntil(() => address() === `10.0.0.${i}`);
    }
  });

  it('watches link targets in other directories', async () => {
    const linkTarget = join(parent, 'elsewhere.yaml');
    writeFileSync(linkTarget, entry('10.0.0.1'));
    symlinkSync(linkTarget, join(root, 'a.yaml'));
    await startAndRead();
    writeFileSync(linkTarget, entry('10.0.0.22'));
    await waitUntil(() => address() === '10.0.0.22');
    writeFileSync(`${linkTarget}.new`, entry('10.0.0.3'));
    renameSync(`${linkTarget}.new`, linkTarget);
    await waitUntil(() => address() === '10.0.0.3');
  });

  it('tolerates dangling links and link cycles', async () => {
    write('a.yaml', entry('10.0.0.1'));
    symlinkSync('nothing.yaml', join(root, 'broken.yaml'));
    symlinkSync('circle.yaml', join(root, 'circle.yaml'));
    symlinkSync('.', join(root, 'here'));
    await startAndRead();
    expect(directory.snapshot.byKey.size).toBe(1);
    write('a.yaml', entry('10.0.0.2'));
    await waitUntil(() => address() === '10.0.0.2');
    rmSync(join(root, 'broken.yaml'));
    write('b.yaml', entry('10.0.0.3', 'b'));
    await waitUntil(() => address('b') === '10.0.0.3');
  });

  it('keeps all objects while the directory does not exist', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await startAndRead();
    rmSync(root, { recursive: true });
    await sleep(60);
    expect(address()).toBe('10.0.0.1');
    write('a.yaml', entry('10.0.0.2'));
    await waitUntil(() => address() === '10.0.0.2');
    renameSync(root, `${root}-old`);
    write('a.yaml', entry('10.0.0.3'));
    await waitUntil(() => address() === '10.0.0.3');
    write('a.yaml', entry('10.0.0.4'));
    await waitUntil(() => address() === '10.0.0.4');
  });

  it('keeps the objects of files that become unreadable', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await startAndRead();
    const previous = readings;
    rmSync(join(root, 'a.yaml'));
    // Reading this file fails even for root.
    symlinkSync('/proc/self/mem', join(root, 'a.yaml'));
    await waitUntil(() => readings > previous);
    await sleep(60);
    expect(address()).toBe('10.0.0.1');
    rmSync(join(root, 'a.yaml'));
    write('a.yaml', entry('10.0.0.2'));
    await waitUntil(() => address() === '10.0.0.2');
  });
});

it('a watch continues with the rest of a tree if its error handler throws', async () => {
  const caughtErrors = uncaughtErrors();
  for (let i = 0; i < 5; i++) mkdirSync(join(root, `${i}`));
  reportedPaths = [];
  const throwOnFailure = (): never => {
    throw new Error('no log');
  };
  stop = watchDirectory(
    root,
    { changed: (path) => void reportedPaths.push(path), failed: throwOnFailure },
    { ...defaultConfigLimits, maxEntries: 3 },
  );
  // Writes the files repeatedly, because some directories were not watched before.
  await eventually('what is below the first names is told', () => {
    for (let i = 0; i < 5; i++) write(`${i}/a.yaml`, entry('10.0.0.1'));
    return new Set(reportedPaths.filter((path) => /\d.a.yaml$/.test(path))).size >= 3;
  });
  expect(caughtErrors.map(({ error }) => String(error))).toContain('Error: no log');
});

it('a watch reports the whole directory only if the watch of a part started too late, not because the directory is large', async () => {
  for (let i = 0; i < 20_000; i++) writeFileSync(join(root, `${i}.txt`), '');
  reportedPaths = [];
  const handlers = {
    changed: (path: string) => void reportedPaths.push(path),
    failed: (error: unknown) => expect.fail(String(error)),
  };
  stop = watchDirectory(root, handlers);
  await sleep(500);
  expect(reportedPaths).toEqual([]);
  write('a.yaml', entry('10.0.0.1'));
  await eventually('a file that comes is told', () => reportedPaths.includes(join(root, 'a.yaml')));
  stop();
  for (let i = 0; i < 2_000; i++) mkdirSync(join(root, `directory-${i}`));
  reportedPaths = [];
  stop = watchDirectory(root, handlers);
  await eventually('the directory is told', () => reportedPaths.includes(root));
});

describe('a burst of changes', () => {
  const changesWith = async (action: () => void): Promise<(boolean | undefined)[]> => {
    const bursts: (boolean | undefined)[] = [];
    stop = watchDirectory(root, {
      changed: (_, isBurst) => void bursts.push(isBurst),
      failed: (error) => expect.fail(String(error)),
    });
    action();
    await eventually('events are reported', () => bursts.length > 0);
    return bursts;
  };

  it('is reported if thousands of files are overwritten', async () => {
    const bursts = await changesWith(() => {
      for (let i = 0; i < 3_000; i++) write(`${i % 30}/${i}.yaml`, entry('10.0.0.1', `a-${i}`));
    });
    expect(bursts).toContain(true);
  });

  it('is not reported for a few files or a switched link', async () => {
    expect(
      await changesWith(() => {
        for (const name of ['a.yaml', 'b.yaml', 'c.yaml']) write(name, entry('10.0.0.1', name[0]));
      }),
    ).not.toContain(true);
    stop();
    for (const version of ['one', 'two']) {
      mkdirSync(join(parent, version));
      for (let i = 0; i < 300; i++) writeFileSync(join(parent, version, `${i}.yaml`), entry('10.0.0.1', `a-${i}`));
    }
    rmSync(root, { recursive: true });
    symlinkSync('one', root);
    const bursts = await changesWith(() => {
      symlinkSync('two', join(parent, 'next'));
      renameSync(join(parent, 'next'), root);
    });
    expect(bursts).not.toContain(true);
  });
});
