import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, setup } from 'xstate';
import type {
  DirectoryFound,
  DirectoryMissing,
  WatchBegan,
  WatchedFilesChanged,
  WatchFailed,
} from '../../../machines/agent/protocol.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually, eventuallyHolds } from '../../../test/harness/eventually.ts';
import { watchDirectory } from './directory-watch.effects.ts';

interface Report {
  readonly paths: string[];
  readonly facts: string[];
  readonly failures: WatchFailed[];
  stop(): void;
}

/** Starts the actor in a machine that records its events. */
function startWatch(
  directory: string,
  effect: ReturnType<typeof watchDirectory>,
  knownHash: string | null = null,
): Report {
  const paths: string[] = [];
  const facts: string[] = [];
  const failures: WatchFailed[] = [];
  const parent = setup({
    types: { events: {} as WatchedFilesChanged | WatchBegan | WatchFailed | DirectoryMissing | DirectoryFound },
    actors: { watch: effect },
    actions: {
      note: ({ event }) => {
        if (event.type === 'files.changed') paths.push(event.path);
        else facts.push(event.type);
        if (event.type === 'watch.failed') failures.push(event);
      },
    },
  }).createMachine({
    invoke: { src: 'watch', input: { directory, knownHash: knownHash } },
    on: { '*': { actions: 'note' } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  return { paths, facts, failures, stop: () => void actor.stop() };
}

/** Starts the watch and waits until it has reported the content. */
async function watching(
  directory: string,
  effect = watchDirectory({ identityCheckMs: 50 }),
  knownHash: string | null = null,
): Promise<Report & { next(change: () => void): Promise<string> }> {
  const reports = startWatch(directory, effect, knownHash);
  const { facts, paths } = reports;
  await eventuallyHolds(() => expect(facts).not.toEqual([]));
  await sleep(300);
  if (knownHash === null) paths.length = 0;
  return {
    ...reports,
    async next(change) {
      paths.length = 0;
      change();
      await eventually('it is reported', () => paths.length > 0, { everyMs: 10 });
      // Waits until the burst of changes ends.
      await sleep(150);
      return paths[0]!;
    },
  };
}

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

test('reports created, changed and removed files', async () => {
  const directory = folder();
  const file = join(directory, 'tls.crt');
  const watch = await watching(directory);
  expect(await watch.next(() => writeFileSync(file, 'one'))).toBe(file);
  expect(await watch.next(() => writeFileSync(file, 'two'))).toBe(file);
  expect(await watch.next(() => unlinkSync(file))).toBe(file);
});

test('does not report files that exist when the watch starts', async () => {
  const directory = folder();
  writeFileSync(join(directory, 'tls.crt'), 'one');
  await sleep(100);
  const { paths, facts } = startWatch(directory, watchDirectory());
  await eventuallyHolds(() => expect(facts).toEqual(['watch.began']));
  await sleep(200);
  expect(paths).toEqual([]);
});

test('reports when Kubernetes switches ..data, although no watched file changes (agent §3.3)', async () => {
  const directory = folder();
  mkdirSync(join(directory, '..1'));
  writeFileSync(join(directory, '..1', 'tls.crt'), 'one');
  symlinkSync('..1', join(directory, '..data'));
  symlinkSync('..data/tls.crt', join(directory, 'tls.crt'));
  const watch = await watching(directory);
  mkdirSync(join(directory, '..2'));
  writeFileSync(join(directory, '..2', 'tls.crt'), 'two');
  symlinkSync('..2', join(directory, '..data_tmp'));
  await sleep(200);
  await watch.next(() => renameSync(join(directory, '..data_tmp'), join(directory, '..data')));
  // The watch must survive the first switch.
  mkdirSync(join(directory, '..3'));
  symlinkSync('..3', join(directory, '..data_tmp'));
  await sleep(200);
  await watch.next(() => renameSync(join(directory, '..data_tmp'), join(directory, '..data')));
});

test('reports a missing directory when it is created, then watches it', async () => {
  const directory = join(folder(), 'later');
  const watch = await watching(directory);
  await watch.next(() => mkdirSync(directory));
  await eventuallyHolds(() => expect(watch.facts.at(-1)).toBe('watch.began'));
  expect(await watch.next(() => writeFileSync(join(directory, 'a.pem'), 'a'))).toBe(join(directory, 'a.pem'));
});

test('watches a directory that is removed and created again', async () => {
  const directory = join(folder(), 'certs');
  mkdirSync(directory);
  const watch = await watching(directory);
  await watch.next(() => rmSync(directory, { recursive: true }));
  await watch.next(() => mkdirSync(directory));
  await eventuallyHolds(() => expect(watch.facts.at(-1)).toBe('watch.began'));
  await watch.next(() => writeFileSync(join(directory, 'a.pem'), 'a'));
});

test('watches the target of a link, even after the link changes', async () => {
  const root = folder();
  mkdirSync(join(root, 'one'));
  mkdirSync(join(root, 'two'));
  const link = join(root, 'link');
  symlinkSync('one', link);
  const watch = await watching(link);
  await watch.next(() => writeFileSync(join(root, 'one', 'a.pem'), 'a'));
  await watch.next(() => {
    symlinkSync('two', `${link}.new`);
    renameSync(`${link}.new`, link);
  });
  await eventuallyHolds(() => expect(watch.facts).toEqual(['watch.began', 'directory.found', 'watch.began']));
  await watch.next(() => writeFileSync(join(root, 'two', 'a.pem'), 'a'));
});

test('finds a change that the kernel does not report by comparing contents', async () => {
  const root = folder();
  const directory = join(root, 'certs');
  mkdirSync(directory);
  const linkTarget = join(root, 'real.pem');
  writeFileSync(linkTarget, 'one');
  symlinkSync(linkTarget, join(directory, 'a.pem'));
  const watch = await watching(directory, watchDirectory({ identityCheckMs: 50, contentPollMs: 100 }));
  expect(await watch.next(() => writeFileSync(linkTarget, 'another'))).toBe(directory);
});

test('reports nothing after it stops', async () => {
  const directory = folder();
  const watch = await watching(directory);
  watch.stop();
  writeFileSync(join(directory, 'tls.crt'), 'one');
  await sleep(300);
  expect(watch.paths).toEqual([]);
});

test('reports a directory as missing, found and watched when it appears and disappears', async () => {
  const directory = join(folder(), 'certs');
  const watch = await watching(directory);
  expect(watch.facts).toEqual(['directory.missing']);
  await watch.next(() => mkdirSync(directory));
  await eventuallyHolds(() => expect(watch.facts).toEqual(['directory.missing', 'directory.found', 'watch.began']));
  await watch.next(() => rmSync(directory, { recursive: true }));
  await eventuallyHolds(() => expect(watch.facts.at(-1)).toBe('directory.missing'));
});

test('reports a difference from the content before the watch as a change', async () => {
  const directory = folder();
  writeFileSync(join(directory, 'tls.crt'), 'one');
  const watch = await watching(directory, watchDirectory(), 'what was there before');
  await eventuallyHolds(() => expect(watch.paths).toEqual([directory]));
});

test('reports a new directory at the path as found before its changes', async () => {
  const root = folder();
  const directory = join(root, 'certs');
  mkdirSync(directory);
  const watch = await watching(directory);
  await watch.next(() => {
    mkdirSync(join(root, 'others'));
    renameSync(directory, join(root, 'gone'));
    renameSync(join(root, 'others'), directory);
  });
  await eventuallyHolds(() => expect(watch.facts).toEqual(['watch.began', 'directory.found', 'watch.began']));
});

test('reports once with the reason that a link to itself cannot be watched', async () => {
  const path = join(folder(), 'loop');
  symlinkSync(path, path);
  const watch = await watching(path);
  expect(watch.facts).toEqual(['watch.failed']);
  expect(watch.failures[0]?.reason).toMatch(/cannot watch .*loop: ELOOP/);
});

const noMoreWatches = (): never => {
  throw Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), { code: 'ENOSPC' });
};

test('reports the last known content when a watch fails, and only later changes in the next watch', async () => {
  const directory = folder();
  writeFileSync(join(directory, 'tls.crt'), 'one');
  const effect = watchDirectory({ identityCheckMs: 50 }, { watch: noMoreWatches });
  const { facts, failures } = await watching(directory, effect);
  expect(facts).toEqual(['watch.failed']);
  expect(failures[0]?.reason).toMatch(/cannot watch .*: ENOSPC/);
  const knownHash = failures[0]!.knownHash;
  expect(knownHash).not.toBeNull();

  const unchanged = await watching(directory, effect, knownHash);
  expect(unchanged.paths).toEqual([]);
  writeFileSync(join(directory, 'tls.crt'), 'two');
  const changedReports = await watching(directory, effect, knownHash);
  expect(changedReports.paths).toEqual([directory]);
});

test('reports restored content as changed, so that it is read again', async () => {
  const directory = folder();
  const link = join(directory, '..data');
  const switchTo = (target: string): void => {
    symlinkSync(target, `${link}_tmp`);
    renameSync(`${link}_tmp`, link);
  };
  for (const name of ['..1', '..2']) mkdirSync(join(directory, name));
  switchTo('..1');
  const effect = watchDirectory({ identityCheckMs: 50 }, { watch: noMoreWatches });
  const earlierReports = await watching(directory, effect);
  switchTo('..2');
  switchTo('..1');
  const laterReports = await watching(directory, effect, earlierReports.failures[0]!.knownHash);
  expect(laterReports.paths).toEqual([directory]);
});

test('makes one call at a time on a hanging file system, and recovers', async () => {
  const directory = folder();
  const hang = Promise.withResolvers<void>();
  let checks = 0;
  const hanging = async (...args: Parameters<typeof stat>) => {
    checks++;
    await hang.promise;
    return stat(...args);
  };
  const effect = watchDirectory({ identityCheckMs: 20 }, { stat: hanging as typeof stat });
  for (let attempts = 0; attempts < 5; attempts++) {
    const { stop, facts } = startWatch(directory, effect);
    await sleep(60);
    expect(facts).toEqual([]);
    stop();
  }
  expect(checks).toBe(1);
  const { facts } = startWatch(directory, effect);
  hang.resolve();
  await eventuallyHolds(() => expect(facts).toEqual(['watch.began']));
});

test.each(['changed', 'removed'] as const)(
  'reports a file that is %s between the start of the watch and the first comparison',
  async (changeKind) => {
    const directory = folder();
    const file = join(directory, 'tls.crt');
    writeFileSync(file, 'one');
    await sleep(100);
    const changeThenRead = async (path: string): Promise<string[]> => {
      if (changeKind === 'changed') writeFileSync(file, 'two');
      else rmSync(file, { force: true });
      return readdir(path);
    };
    const { paths, facts } = startWatch(
      directory,
      watchDirectory({ identityCheckMs: 5_000 }, { readdir: changeThenRead }),
    );
    await eventuallyHolds(() => expect(facts).toEqual(['watch.began']));
    await eventuallyHolds(() => expect(paths).toContain(directory));
  },
);

test('reads files again if the first comparison took long', async () => {
  const directory = folder();
  const slowStat = async (...args: Parameters<typeof stat>) => {
    await sleep(100);
    return stat(...args);
  };
  const { paths } = startWatch(directory, watchDirectory({ identityCheckMs: 50 }, { stat: slowStat as typeof stat }));
  await eventuallyHolds(() => expect(paths).toEqual([directory]));
});

test('compares only files that are read, one at a time', async () => {
  const directory = folder();
  for (let i = 0; i < 3_000; i++) writeFileSync(join(directory, `${i}.pem`), '');
  let activeCalls = 0;
  let maxCalls = 0;
  let checks = 0;
  const countedStat = async (...args: Parameters<typeof stat>) => {
    checks++;
    maxCalls = Math.max(maxCalls, ++activeCalls);
    try {
      return await stat(...args);
    } finally {
      activeCalls--;
    }
  };
  const watch = await watching(
    directory,
    watchDirectory({ identityCheckMs: 5_000 }, { stat: countedStat as typeof stat }),
  );
  await eventuallyHolds(() => expect(checks).toBe(1 + 2 * 1_000));
  expect(maxCalls).toBe(1);
  expect(watch.facts).toEqual(['watch.began']);
});
