import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createActor, toPromise } from 'xstate';
import type { BinaryCheckResult } from '../../../machines/agent/files/binary-watcher.machine.ts';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { isAlive } from '../../../test/harness/process-alive.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import { EnvoyBinaries, firstBinary } from '../envoy/envoy-binaries.ts';
import type { ValidationResult } from '../envoy/envoy-validation.ts';
import { checkBinary } from './check-binary.ts';

const versionOf = (release: string): string => `echo "envoy  version: abc123/${release}/Clean/RELEASE/BoringSSL"`;

interface BinaryOptions {
  readonly release?: string;
  readonly hotRestart?: string;
  /** Output before the version. */
  readonly first?: string;
}

/** A program with Envoy's output, including the hot restart version on stderr without a line end. */
function envoy({ release = '1.39.3', hotRestart = '11.104', first = '' }: BinaryOptions = {}): string {
  return `#!/bin/sh\n${first}\nfor word in "$@"; do case $word in\n--version) ${versionOf(release)}; exit;;\n--hot-restart-version) printf ${hotRestart} >&2; exit;;\nesac; done\n`;
}

function createCheck(validation: ValidationResult = { is: 'taken' }, initialContent = envoy()) {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, 'envoy');
  /** Moves another file to the path. */
  const put = (content: string, mode = 0o700): void => {
    writeFileSync(`${path}.new`, content, { mode });
    renameSync(`${path}.new`, path);
  };
  put(initialContent);
  const binaries = new EnvoyBinaries(path);
  onTestFinished(() => binaries.close());
  const validatedPaths: string[] = [];
  const order = () =>
    createActor(
      checkBinary({
        binaries,
        turns: new FileTurns(),
        envoyArguments: ['--concurrency', '2'],
        hotRestart: true,
        validate: async (binary) => {
          validatedPaths.push(binary);
          return validation;
        },
      }),
      { input: { path, known: firstBinary } },
    ).start();
  const check = (): Promise<BinaryCheckResult> => toPromise(order());
  return { path, folder: folder.path, put, binaries, asked: order, check, judged: validatedPaths };
}

const nameIn = (check: BinaryCheckResult): string => ('binary' in check ? check.binary : '');

test('recognizes the current binary without executing it', async () => {
  const { check, judged } = createCheck();
  expect(await check()).toMatchObject({ binary: firstBinary });
  expect(judged).toEqual([]);
});

test('recognizes a copy of a known binary by its content', async () => {
  const { path, check, judged } = createCheck();
  copyFileSync(path, `${path}.copy`);
  renameSync(`${path}.copy`, path);
  expect(await check()).toMatchObject({ binary: firstBinary });
  expect(judged).toEqual([]);
});

test('reports version, digest and path of a compatible binary, and pins it', async () => {
  const { path, put, check, binaries } = createCheck();
  put(envoy({ release: '1.40.0' }));
  const checkResult = await check();
  expect(checkResult).toMatchObject({
    description: expect.stringMatching(/^1\.40\.0 \(sha256 [0-9a-f]{64}\) \/.*\/envoy$/),
  });
  expect(binaries.pathOf(nameIn(checkResult))).toBe(path);
  expect(binaries.pathOf(firstBinary)).toMatch(/^\/proc\/\d+\/fd\/\d+$/);
});

test.each<[string, BinaryOptions, RegExp]>([
  [
    'of another hot restart version',
    { hotRestart: '11.112' },
    /hot restart version 11\.112, running Envoy has 11\.104/,
  ],
  ['that is not Envoy', { first: 'exit 0' }, /printed no Envoy version: exit code 0 without output/],
  [
    'that rejects a flag',
    { first: 'case "$*" in *concurrency*) echo "no such flag" >&2; exit 1;; esac' },
    /no such flag/,
  ],
])('rejects a binary %s', async (_, kind, reason) => {
  const { put, check, judged } = createCheck();
  put(envoy({ release: '1.40.0', ...kind }));
  expect(await check()).toMatchObject({ refused: expect.stringMatching(reason) });
  expect(judged).toEqual([]);
});

test('accepts a binary if the running one does not report its version', async () => {
  const { put, check, binaries } = createCheck({ is: 'taken' }, '#!/bin/sh\necho "no such device" >&2\nexit 3\n');
  put(envoy({ release: '1.40.0' }));
  expect(binaries.pathOf(nameIn(await check()))).toMatch(/envoy$/);
});

test('rejects a binary that rejects the bootstrap, and returns no result without a validation', async () => {
  for (const [result, key] of [
    ['refused', 'refused'],
    ['not known', 'unknown'],
  ] as const) {
    const { put, check } = createCheck({ is: result, why: 'no such filter' });
    put(envoy({ release: '1.40.0' }));
    expect(await check()).toMatchObject({ [key]: expect.stringContaining('no such filter') });
  }
});

test('rejects a file that does not exist or is not executable', async () => {
  const { path, put, check, folder } = createCheck();
  rmSync(path);
  expect(await check()).toEqual({ refused: `${path} does not exist` });
  symlinkSync(folder, path);
  expect(await check()).toMatchObject({ refused: expect.stringContaining('is not an executable file') });
  rmSync(path);
  put(envoy(), 0o600);
  expect(await check()).toMatchObject({ refused: expect.stringContaining('is not an executable file') });
});

test('executes a pinned binary even if its path is replaced, until it is released or overwritten', async () => {
  const { path, put, check, binaries, folder } = createCheck();
  renameSync(path, join(folder, 'old'));
  put(envoy({ release: '1.40.0' }));
  const name = nameIn(await check());
  expect(binaries.pathOf(firstBinary)).toMatch(/^\/proc\//);
  writeFileSync(join(folder, 'old'), 'another content');
  expect(() => binaries.pathOf(firstBinary)).toThrow(codedError('ENVOY_CHANGED', { path }));
  binaries.closeExcept(new Set([name]));
  expect(binaries.newestPath).toBe(path);
  expect(() => binaries.pathOf(firstBinary)).toThrow(/unknown Envoy binary first/);
});

describe('binary that starts other processes', () => {
  const pidsIn = (folder: string): number[] => {
    const file = join(folder, 'pids');
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number) : [];
  };
  const waitForExit = (folder: string) =>
    eventually('what it has started has ended', () => pidsIn(folder).every((pid) => !isAlive(pid)));

  test('completes when it exits, and its child processes are killed', async () => {
    const { put, check, folder } = createCheck();
    put(envoy({ release: '1.40.0', first: `sleep 60 &\necho $! >>${folder}/pids` }));
    expect(await check()).toMatchObject({ description: expect.stringMatching(/^1\.40\.0/) });
    expect(pidsIn(folder)).not.toEqual([]);
    await waitForExit(folder);
  });

  test('is killed with its child processes when aborted', async () => {
    const { put, asked: order, folder } = createCheck();
    put(envoy({ first: `sh -c 'echo $$ >>${folder}/pids; exec sleep 60'` }));
    const check = order();
    await eventually('it hangs', () => pidsIn(folder).length > 0);
    check.stop();
    await waitForExit(folder);
  });
});
