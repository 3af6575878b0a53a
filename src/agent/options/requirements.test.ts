import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { envoyBinary, temporaryFolder, testFlags } from '../../../test/fixtures/real-envoy.ts';
import { defaultDeadlineMs } from '../../../test/harness/eventually.ts';
import type { EnvoyFlags } from '../envoy/envoy-args.ts';
import { requireFlags, requireFolders } from './requirements.ts';

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

describe('check of the Envoy command line before the start', () => {
  test.each<[string, Partial<EnvoyFlags>, string]>([
    ['an unknown component', { componentLogLevel: 'foo:debug' }, "invalid component specified 'foo'"],
    ['an unknown level of a component', { componentLogLevel: 'upstream:loud' }, "invalid log level specified 'loud'"],
    [
      'a component without a level',
      { componentLogLevel: 'upstream' },
      "component log level not correctly specified 'upstream'",
    ],
    ['an empty component', { componentLogLevel: 'upstream:debug,' }, "component log level not correctly specified ''"],
    ['an unknown level', { logLevel: 'loud' }, "invalid log level specified 'loud'"],
    ['a drain time of more than 32 bits', { drainMs: 2 ** 32 * 1000 }, '(--drain-time-s) -- '],
    [
      'a parent shutdown time of more than 32 bits',
      { parentShutdownMs: 2 ** 32 * 1000 },
      '(--parent-shutdown-time-s) -- ',
    ],
    ['a concurrency of more than 32 bits', { concurrency: 2 ** 32 }, '(--concurrency) -- '],
    ['a flush interval of more than 32 bits', { fileFlushIntervalMs: 2 ** 32 }, '(--file-flush-interval-msec) -- '],
    ['a flush size of more than 32 bits', { fileFlushMinSizeKb: 2 ** 32 }, '(--file-flush-min-size-kb) -- '],
    ['an unknown IP version', { ipVersion: 'v5' as 'v4' }, "unknown IP address version 'v5'"],
  ])('rejects %s', async (_, flags, errorText) => {
    await expect(requireFlags(envoyBinary(), { ...testFlags, ...flags }, defaultDeadlineMs)).rejects.toThrow(
      `invalid flag or environment variable: Envoy rejects its command line: ${errorText}`,
    );
  });

  test.each<[string, Partial<EnvoyFlags>]>([
    ['the flags of the tests', {}],
    ['all flags', { componentLogLevel: 'upstream:debug,config:trace', fileFlushIntervalMs: 1, fileFlushMinSizeKb: 0 }],
    ['an override', { configOverride: '{"admin": {}}' }],
    ['disabled hot restart', { disableHotRestart: true }],
    ['drain and shutdown times of 0', { drainMs: 0, parentShutdownMs: 0 }],
  ])('accepts %s', async (_, flags) => {
    await requireFlags(envoyBinary(), { ...testFlags, ...flags });
  });

  test('accepts flags that Envoy rejects without a message', async () => {
    for (const binary of ['/bin/false', '/bin/true', '/nowhere/envoy']) await requireFlags(binary, testFlags);
  });
});

describe('required folders', () => {
  test('are created empty if missing, and the folder of generated files only for the current user', () => {
    const [runDir, configPath, sharedMemoryDir] = [join(folder(), 'run'), join(folder(), 'a', 'proxy'), folder()];
    requireFolders({ runDir, configPath, hotRestart: true, sharedMemoryDir });
    expect(statSync(configPath).mode & 0o777).toBe(0o700);
    for (const path of [runDir, configPath, sharedMemoryDir]) expect(readdirSync(path)).toEqual([]);
  });

  test.each([
    ['runDir', 'FILE_UNREADABLE', '--runDir'],
    ['configPath', 'FILE_UNWRITABLE', '--configPath'],
    ['sharedMemoryDir', 'SHARED_MEMORY_UNUSABLE', '--hotRestart off'],
  ] as const)('are reported as unusable: %s', (folderOption, code, flag) => {
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    const usableFolders = { runDir: folder(), configPath: folder(), hotRestart: true, sharedMemoryDir: folder() };
    expect(() => requireFolders({ ...usableFolders, [folderOption]: join(file, 'below') })).toThrow(
      expect.objectContaining({
        code,
        message: expect.stringMatching(/below: ENOTDIR/),
        hint: expect.stringContaining(flag),
      }),
    );
  });

  test('include no configuration folder if nothing is generated, and no shared memory without hot restarts', () => {
    requireFolders({ runDir: folder(), configPath: undefined, hotRestart: false, sharedMemoryDir: '/nowhere' });
  });

  test('can belong to another user if a configured run directory is writable', () => {
    const runDir = join(folder(), 'shared');
    mkdirSync(runDir);
    chmodSync(runDir, 0o777);
    requireFolders({ runDir, configPath: undefined, hotRestart: false });
  });
});
