/** What a person or a program does to files, until it is in force: the watch and the reading together, on the real file system. */
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
/** Every path that was told. */
let told: string[];
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

/** As the statechart does it: 20 ms from the first of a batch, then the paths of the batch. */
function begin(): void {
  directory = new ConfigDirectory(root);
  told = [];
  readings = 0;
  let due: string[] = [];
  let isReading = false;
  const read = async (): Promise<void> => {
    if (isReading || due.length === 0) return;
    isReading = true;
    const paths = due;
    due = [];
    await directory.read(paths);
    readings++;
    isReading = false;
    void read();
  };
  stop = watchDirectory(root, {
    changed: (path) => {
      told.push(path);
      if (due.length === 0) setTimeout(read, 20);
      due.push(path);
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

/** Waits until something holds. */
async function until(holds: () => boolean): Promise<void> {
  const start = performance.now();
  while (!holds()) {
    // Nothing is judged by it: a machine that does ten other things is fast enough.
    if (performance.now() - start > 90_000) throw new Error('it never came to that');
    await sleep(1);
  }
}

/** Watched from before the first reading, as the statechart does it. */
async function begun(): Promise<void> {
  begin();
  await directory.read();
}

/** Switches what is mounted in one step, as Kubernetes does. */
function mount(version: string, text: string): void {
  write(`..${version}/a.yaml`, text);
  symlinkSync(`..${version}`, join(root, '..data_tmp'));
  renameSync(join(root, '..data_tmp'), join(root, '..data'));
}

describe('a change of a file', () => {
  it('is in force at once, and names that file alone', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await begun();
    const took: number[] = [];
    for (let i = 2; i < 12; i++) {
      told.length = 0;
      write('a.yaml', entry(`10.0.0.${i}`));
      took.push(await msWithoutQueueing([process.pid], () => until(() => address() === `10.0.0.${i}`)));
      expect(new Set(told)).toEqual(new Set([join(root, 'a.yaml')]));
    }
    // Up to 20 ms are the coalescing. A machine that does other things as well is slow at times; what waits does so each time.
    expect(took.sort((a, b) => a - b)[1]).toBeLessThan(60);
  });

  it('is not lost when another comes soon after', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await begun();
    for (let i = 2; i < 30; i++) {
      write('a.yaml', entry(`10.0.0.${i}`));
      await sleep(i);
    }
    await until(() => address() === '10.0.0.29');
  });

  it('counts when the file is replaced in one step, appended to, or removed', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await begun();
    write('.a.yaml.tmp', entry('10.0.0.2'));
    renameSync(join(root, '.a.yaml.tmp'), join(root, 'a.yaml'));
    await until(() => address() === '10.0.0.2');
    appendFileSync(join(root, 'a.yaml'), `---\n${entry('10.0.0.3', 'b')}`);
    await until(() => address('b') === '10.0.0.3');
    rmSync(join(root, 'a.yaml'));
    await until(() => address() === undefined);
  });

  it("does not take up an editor's temporary files", async () => {
    write('a.yaml', entry('10.0.0.1'));
    await begun();
    const text = entry('10.0.0.9', 'temporary');
    for (const name of ['.a.yaml.swp', '4913', 'a.yaml~', '#a.yaml#', '.#a.yaml']) write(name, text);
    renameSync(join(root, 'a.yaml'), join(root, 'a.yaml~'));
    write('a.yaml', entry('10.0.0.2'));
    rmSync(join(root, 'a.yaml~'));
    await until(() => address() === '10.0.0.2');
    expect(directory.snapshot.byKey.size).toBe(1);
  });
});

describe('directories and links', () => {
  it('come with what is in them, at any depth, and go', async () => {
    await begun();
    write('shop/routes/a.yaml', entry('10.0.0.1'));
    await until(() => address() === '10.0.0.1');
    write('shop/routes/a.yaml', entry('10.0.0.2'));
    await until(() => address() === '10.0.0.2');
    renameSync(join(root, 'shop'), join(root, 'store'));
    write('store/routes/a.yaml', entry('10.0.0.3'));
    await until(() => address() === '10.0.0.3');
    rmSync(join(root, 'store'), { recursive: true });
    await until(() => address() === undefined);
    write('store/routes/a.yaml', entry('10.0.0.4'));
    await until(() => address() === '10.0.0.4');
  });

  it('may take the place of a file, and the other way round', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await begun();
    rmSync(join(root, 'a.yaml'));
    write('a.yaml/b.yaml', entry('10.0.0.2', 'b'));
    await until(() => address() === undefined && address('b') === '10.0.0.2');
    write('a.yaml/b.yaml', entry('10.0.0.3', 'b'));
    await until(() => address('b') === '10.0.0.3');
    rmSync(join(root, 'a.yaml'), { recursive: true });
    write('a.yaml', entry('10.0.0.4'));
    await until(() => address('b') === undefined && address() === '10.0.0.4');
  });

  it('are followed through the switch of a Kubernetes mount', async () => {
    mount('1', entry('10.0.0.1'));
    symlinkSync('..data/a.yaml', join(root, 'a.yaml'));
    await begun();
    expect(address()).toBe('10.0.0.1');
    for (let i = 2; i < 5; i++) {
      mount(String(i), entry(`10.0.0.${i}`));
      rmSync(join(root, `..${i - 1}`), { recursive: true });
      await until(() => address() === `10.0.0.${i}`);
    }
  });

  it('are followed to files that lie elsewhere', async () => {
    const elsewhere = join(parent, 'elsewhere.yaml');
    writeFileSync(elsewhere, entry('10.0.0.1'));
    symlinkSync(elsewhere, join(root, 'a.yaml'));
    await begun();
    writeFileSync(elsewhere, entry('10.0.0.22'));
    await until(() => address() === '10.0.0.22');
    writeFileSync(`${elsewhere}.new`, entry('10.0.0.3'));
    renameSync(`${elsewhere}.new`, elsewhere);
    await until(() => address() === '10.0.0.3');
  });

  it('may lead to nothing, or to themselves', async () => {
    write('a.yaml', entry('10.0.0.1'));
    symlinkSync('nothing.yaml', join(root, 'broken.yaml'));
    symlinkSync('circle.yaml', join(root, 'circle.yaml'));
    symlinkSync('.', join(root, 'here'));
    await begun();
    expect(directory.snapshot.byKey.size).toBe(1);
    write('a.yaml', entry('10.0.0.2'));
    await until(() => address() === '10.0.0.2');
    rmSync(join(root, 'broken.yaml'));
    write('b.yaml', entry('10.0.0.3', 'b'));
    await until(() => address('b') === '10.0.0.3');
  });

  it('keep everything in force while the directory itself is away', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await begun();
    rmSync(root, { recursive: true });
    await sleep(60);
    expect(address()).toBe('10.0.0.1');
    write('a.yaml', entry('10.0.0.2'));
    await until(() => address() === '10.0.0.2');
    renameSync(root, `${root}-old`);
    write('a.yaml', entry('10.0.0.3'));
    await until(() => address() === '10.0.0.3');
    write('a.yaml', entry('10.0.0.4'));
    await until(() => address() === '10.0.0.4');
  });

  it('keep in force what cannot be read any more', async () => {
    write('a.yaml', entry('10.0.0.1'));
    await begun();
    const before = readings;
    rmSync(join(root, 'a.yaml'));
    // A file whose reading fails, for root too.
    symlinkSync('/proc/self/mem', join(root, 'a.yaml'));
    await until(() => readings > before);
    await sleep(60);
    expect(address()).toBe('10.0.0.1');
    rmSync(join(root, 'a.yaml'));
    write('a.yaml', entry('10.0.0.2'));
    await until(() => address() === '10.0.0.2');
  });
});

it('goes on with the rest of a tree when somebody could not be told of a part of it', async () => {
  const caught = uncaughtErrors();
  for (let i = 0; i < 5; i++) mkdirSync(join(root, `${i}`));
  told = [];
  const failed = (): never => {
    throw new Error('no log');
  };
  stop = watchDirectory(
    root,
    { changed: (path) => void told.push(path), failed },
    { ...defaultConfigLimits, maxEntries: 3 },
  );
  // Again, where they are watched only now.
  await eventually('what is below the first names is told', () => {
    for (let i = 0; i < 5; i++) write(`${i}/a.yaml`, entry('10.0.0.1'));
    return new Set(told.filter((path) => /\d.a.yaml$/.test(path))).size >= 3;
  });
  expect(caught.map(({ error }) => String(error))).toContain('Error: no log');
});

it('is not told as a whole only because it has very many names: it is, where something was watched late', async () => {
  for (let i = 0; i < 20_000; i++) writeFileSync(join(root, `${i}.txt`), '');
  told = [];
  const handlers = {
    changed: (path: string) => void told.push(path),
    failed: (error: unknown) => expect.fail(String(error)),
  };
  stop = watchDirectory(root, handlers);
  await sleep(500);
  expect(told).toEqual([]);
  write('a.yaml', entry('10.0.0.1'));
  await eventually('a file that comes is told', () => told.includes(join(root, 'a.yaml')));
  stop();
  for (let i = 0; i < 2_000; i++) mkdirSync(join(root, `directory-${i}`));
  told = [];
  stop = watchDirectory(root, handlers);
  await eventually('the directory is told', () => told.includes(root));
});

describe('a burst', () => {
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

  it('is reported when a version of thousands of files is written over another one', async () => {
    const bursts = await changesWith(() => {
      for (let i = 0; i < 3_000; i++) write(`${i % 30}/${i}.yaml`, entry('10.0.0.1', `a-${i}`));
    });
    expect(bursts).toContain(true);
  });

  it('is not what a few files cause, nor a link that is switched', async () => {
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
