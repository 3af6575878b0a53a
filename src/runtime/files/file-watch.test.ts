import { createHook } from 'node:async_hooks';
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { watchFile } from './file-watch.ts';

let root: string;
const stops: (() => void)[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-watch-'));
});

afterEach(() => {
  for (const stop of stops.splice(0)) stop();
  rmSync(root, { recursive: true, force: true });
});

/** @returns a function that runs a task and waits for the next report */
async function watching(
  startWatch: typeof watchFile,
  path: string,
): Promise<(task: () => void, withinMs?: number) => Promise<boolean>> {
  let reports = 0;
  const changed = (): void => void reports++;
  stops.push(startWatch(path, { changed, failed: (error) => expect.fail(String(error)) }));
  const waitForReport = async (previous: number, timeoutMs: number): Promise<boolean> => {
    for (const from = performance.now(); reports === previous && performance.now() - from < timeoutMs; )
      await sleep(10);
    return reports > previous;
  };
  await waitForReport(0, 1_000);
  await sleep(50);
  return async (task, timeoutMs = 60_000) => {
    const previous = reports;
    task();
    const isReported = await waitForReport(previous, timeoutMs);
    // Further reports of the same task do not count for the next one.
    await sleep(50);
    return isReported;
  };
}

/** Mounts a version of a file as Kubernetes does: behind a link that is switched atomically. */
function mount(directory: string, version: string, content: string): void {
  mkdirSync(join(directory, `..${version}`), { recursive: true });
  writeFileSync(join(directory, `..${version}`, 'mesh'), content);
  symlinkSync(`..${version}`, join(directory, '..data_tmp'));
  renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
}

describe('watchFile', () => {
  it('reports that a file was written, replaced, removed and written again', async () => {
    const file = join(root, 'mesh');
    writeFileSync(file, '1');
    const reportedAfter = await watching(watchFile, file);
    expect(await reportedAfter(() => writeFileSync(file, '2'))).toBe(true);
    expect(
      await reportedAfter(() => {
        writeFileSync(join(root, 'mesh.tmp'), '3');
        renameSync(join(root, 'mesh.tmp'), file);
      }),
    ).toBe(true);
    expect(await reportedAfter(() => rmSync(file))).toBe(true);
    expect(await reportedAfter(() => writeFileSync(file, '4'))).toBe(true);
  });

  it('reports a file whose directory did not exist at the start', async () => {
    const reportedAfter = await watching(watchFile, join(root, 'etc/istio/config/mesh'));
    await reportedAfter(() => mkdirSync(join(root, 'etc/istio/config'), { recursive: true }), 1_000);
    expect(await reportedAfter(() => writeFileSync(join(root, 'etc/istio/config/mesh'), '1'))).toBe(true);
  });

  it('reports a file whose directory was removed and recreated', async () => {
    const file = join(root, 'etc/mesh');
    mkdirSync(join(root, 'etc'));
    writeFileSync(file, '1');
    const reportedAfter = await watching(watchFile, file);
    expect(await reportedAfter(() => rmSync(join(root, 'etc'), { recursive: true }))).toBe(true);
    await reportedAfter(() => mkdirSync(join(root, 'etc')), 1_000);
    expect(await reportedAfter(() => writeFileSync(file, '2'))).toBe(true);
  });

  it('makes no file system calls when files are written next to a missing directory', async () => {
    for (let i = 0; i < 50; i++) writeFileSync(join(root, `beside-${i}`), '');
    await watching(watchFile, join(root, 'etc/mesh'));
    let checkedPaths = 0;
    const questions = createHook({ init: (_, type) => void (type.startsWith('FSREQ') && checkedPaths++) }).enable();
    for (let i = 0; i < 20; i++) {
      appendFileSync(join(root, 'beside-0'), 'a line of a log\n');
      await sleep(5);
    }
    questions.disable();
    expect(checkedPaths).toBe(0);
  });

  it('reports each switch of a link on the path of the file', async () => {
    mount(root, 'v1', '1');
    symlinkSync('..data/mesh', join(root, 'mesh'));
    const reportedAfter = await watching(watchFile, join(root, 'mesh'));
    expect(await reportedAfter(() => mount(root, 'v2', '2'))).toBe(true);
    expect(await reportedAfter(() => rmSync(join(root, '..v1'), { recursive: true }))).toBe(true);
    expect(await reportedAfter(() => mount(root, 'v3', '3'))).toBe(true);
  });

  it('ignores other files', async () => {
    writeFileSync(join(root, 'mesh'), '1');
    const reportedAfter = await watching(watchFile, join(root, 'mesh'));
    expect(await reportedAfter(() => writeFileSync(join(root, 'other'), '1'), 1_000)).toBe(false);
  });
});
