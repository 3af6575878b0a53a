/** Modules that the built programs load at the start, and compiled code that they store for the next start. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../src/runtime/package-root.ts';

const root = packageRoot();
const programs = ['pilot-agent', 'pilot-discovery', 'chartpilot'] as const;

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-start-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test.each(programs)('%s does not load fetch, which is unused and would cost 14 MB and 40 ms', async (program) => {
  const loaderScript = join(scratch(), 'look.cjs');
  writeFileSync(loaderScript, "process.on('exit', () => console.error(process.moduleLoadList.join('\\n')));");
  const { stderr } = await execa(process.execPath, [
    '-r',
    loaderScript,
    join(root, 'dist', `${program}.mjs`),
    '--help',
  ]);
  expect(stderr).toContain('NativeModule fs');
  expect(stderr).not.toContain('undici');
});

test('pilot-agent does not load unused Node modules that its libraries import: threads, assertions, WebCrypto, TLS', async () => {
  const loaderScript = join(scratch(), 'look.cjs');
  writeFileSync(loaderScript, "process.on('exit', () => console.error(process.moduleLoadList.join('\\n')));");
  const program = join(root, 'dist/pilot-agent.mjs');
  const env = { PATH: process.env.PATH, PROXY_CONFIG: '{controlPlaneAuthPolicy: NONE}' };
  const args = ['-r', loaderScript, program, 'bootstrap', '--out', '-'];
  const { stdout, stderr } = await execa(process.execPath, args, { cwd: scratch(), extendEnv: false, env });
  expect(JSON.parse(stdout)).toHaveProperty('node');
  const loaded = new Set(stderr.split('\n'));
  const unused = [
    'worker_threads',
    'assert',
    'internal/crypto/webcrypto',
    'dns/promises',
    'http2',
    'tls',
    'zlib',
    'v8',
  ];
  expect(unused.filter((name) => loaded.has(`NativeModule ${name}`))).toEqual([]);
  expect(loaded).toContain('NativeModule net');
});

test.each(programs)('%s contains only Latin-1 characters, so that V8 stores one byte per character', (program) => {
  const chunkFiles = (file: string): string[] => {
    const text = readFileSync(join(root, 'dist', file), 'utf8');
    const chunks = [...text.matchAll(/^(?:import|\} from) "\.\/(chunk-\w+\.mjs)";$/gm)].map(([, name]) => name!);
    return [...(/[^\0-\x7f]/.test(text) ? [file] : []), ...chunks.flatMap(chunkFiles)];
  };
  expect(chunkFiles(`${program}.mjs`)).toEqual([]);
});

test.each(['pilot-agent', 'pilot-discovery'])(
  'the built %s prints its version as YAML and as JSON',
  async (program) => {
    const version = async (format: string): Promise<string> =>
      (await execa(join(root, 'bin', program), ['version', '-o', format])).stdout;
    const { clientVersion } = parse(await version('yaml')) as { clientVersion: object };
    expect(clientVersion).toMatchObject({
      version: expect.stringMatching(/^\d/),
      runtime: expect.stringMatching(/^node v/),
    });
    expect(JSON.parse(await version('json'))).toEqual({ clientVersion });
  },
);

test('the next start reuses compiled code, and works even if the compiled code is damaged or missing', async () => {
  const folder = scratch();
  for (const packagePart of ['bin', 'dist', 'package.json'])
    cpSync(join(root, packagePart), join(folder, packagePart), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const cache = join(folder, 'dist/compile-cache');
  const cachedFiles = (): string[] =>
    readdirSync(cache, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
  // Excludes vitest's variables, some of which affect the compile cache.
  const environment = { extendEnv: false, env: { PATH: process.env.PATH } };
  const version = async (): Promise<string> =>
    (await execa(join(folder, 'bin/pilot-agent'), ['version'], environment)).stdout;
  rmSync(cache, { recursive: true });
  const firstOutput = await version();
  expect(firstOutput).toMatch(/^version/);
  // The cache contains the program, node-version.cjs, and chunks.
  expect(cachedFiles().length).toBeGreaterThan(2);
  for (const file of cachedFiles()) writeFileSync(file, 'no code');
  expect(await version()).toBe(firstOutput);
  rmSync(cache, { recursive: true });
  writeFileSync(cache, 'no folder');
  expect(await version()).toBe(firstOutput);
});
