import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type WatchTimes, watchDirectories } from './certificate-watch.ts';

/** Starts the effect below a machine that notes what it is told. */
async function watching(
  directories: string[],
  times: Partial<WatchTimes> = { identityMs: 50 },
): Promise<{ paths: string[]; next: (deed: () => void) => Promise<string>; stop: () => void }> {
  const paths: string[] = [];
  const parent = setup({
    types: { events: {} as { type: 'files.changed'; path: string } },
    actors: { watch: watchDirectories(silentLogger, times) },
    actions: {
      note: ({ event }) => {
        paths.push(event.path);
      },
    },
  }).createMachine({
    invoke: { src: 'watch', input: { directories } },
    on: { 'files.changed': { actions: 'note' } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  // The watches are set up by then; nothing has changed.
  await sleep(300);
  paths.length = 0;
  return {
    paths,
    stop: () => void actor.stop(),
    async next(deed) {
      paths.length = 0;
      deed();
      for (let waited = 0; waited < 5_000 && paths.length === 0; waited += 10) await sleep(10);
      if (paths.length === 0) throw new Error('nothing was told in 5 s');
      // What belongs to the same deed.
      await sleep(150);
      return paths[0]!;
    },
  };
}

function folder(): string {
  const made = temporaryFolder();
  onTestFinished(() => made[Symbol.dispose]());
  return made.path;
}

test('creating, changing and removing a file is told', async () => {
  const directory = folder();
  const file = join(directory, 'tls.crt');
  const watch = await watching([directory]);
  expect(await watch.next(() => writeFileSync(file, 'one'))).toBe(file);
  expect(await watch.next(() => writeFileSync(file, 'two'))).toBe(file);
  expect(await watch.next(() => unlinkSync(file))).toBe(file);
});

test('what is there at the start is not told', async () => {
  const directory = folder();
  writeFileSync(join(directory, 'tls.crt'), 'one');
  const watch = await watching([directory]);
  await sleep(200);
  expect(watch.paths).toEqual([]);
});

test('Kubernetes’ switch of ..data is told, although no watched file changes itself', async () => {
  const directory = folder();
  mkdirSync(join(directory, '..1'));
  writeFileSync(join(directory, '..1', 'tls.crt'), 'one');
  symlinkSync('..1', join(directory, '..data'));
  symlinkSync('..data/tls.crt', join(directory, 'tls.crt'));
  const watch = await watching([directory]);
  mkdirSync(join(directory, '..2'));
  writeFileSync(join(directory, '..2', 'tls.crt'), 'two');
  symlinkSync('..2', join(directory, '..data_tmp'));
  await sleep(200);
  await watch.next(() => renameSync(join(directory, '..data_tmp'), join(directory, '..data')));
  // And again: the watch has not died with the first switch.
  mkdirSync(join(directory, '..3'));
  symlinkSync('..3', join(directory, '..data_tmp'));
  await sleep(200);
  await watch.next(() => renameSync(join(directory, '..data_tmp'), join(directory, '..data')));
});

test('a directory that is missing is told when it appears, and watched from then on', async () => {
  const directory = join(folder(), 'later');
  const watch = await watching([directory]);
  await watch.next(() => mkdirSync(directory));
  await sleep(200);
  expect(await watch.next(() => writeFileSync(join(directory, 'a.pem'), 'a'))).toBe(join(directory, 'a.pem'));
});

test('a directory that is removed and made anew is watched anew', async () => {
  const directory = join(folder(), 'certs');
  mkdirSync(directory);
  const watch = await watching([directory]);
  await watch.next(() => rmSync(directory, { recursive: true }));
  await watch.next(() => mkdirSync(directory));
  await sleep(200);
  await watch.next(() => writeFileSync(join(directory, 'a.pem'), 'a'));
});

test('a path that is a link is watched where it leads, and followed when it leads elsewhere', async () => {
  const root = folder();
  mkdirSync(join(root, 'one'));
  mkdirSync(join(root, 'two'));
  const link = join(root, 'link');
  symlinkSync('one', link);
  const watch = await watching([link]);
  await watch.next(() => writeFileSync(join(root, 'one', 'a.pem'), 'a'));
  await watch.next(() => {
    symlinkSync('two', `${link}.new`);
    renameSync(`${link}.new`, link);
  });
  await sleep(200);
  await watch.next(() => writeFileSync(join(root, 'two', 'a.pem'), 'a'));
});

test('a change that the kernel does not tell of is found by comparing', async () => {
  const root = folder();
  const directory = join(root, 'certs');
  mkdirSync(directory);
  const elsewhere = join(root, 'real.pem');
  writeFileSync(elsewhere, 'one');
  symlinkSync(elsewhere, join(directory, 'a.pem'));
  const watch = await watching([directory], { identityMs: 50, safetyMs: 100 });
  expect(await watch.next(() => writeFileSync(elsewhere, 'another'))).toBe(directory);
});

test('nothing is told after the stop', async () => {
  const directory = folder();
  const watch = await watching([directory]);
  watch.stop();
  writeFileSync(join(directory, 'tls.crt'), 'one');
  await sleep(300);
  expect(watch.paths).toEqual([]);
});
