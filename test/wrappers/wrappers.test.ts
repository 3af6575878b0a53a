import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createContext, runInContext } from 'node:vm';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { eventually } from '../harness/eventually.ts';

const bin = join(packageRoot(), 'bin');
const programs = ['chartpilot', 'pilot-agent', 'pilot-discovery'];
const packaged = `node-linux-${process.arch}`;

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-wrappers-'));
  folders.push(folder);
  return folder;
}

/** The package's wrappers without its programs: each fake Node prints its own name. */
function packageIn(root: string): string {
  cpSync(bin, join(root, 'bin'), { recursive: true });
  mkdirSync(join(root, 'dist'));
  for (const program of programs) writeFileSync(join(root, 'dist', `${program}.mjs`), '');
  return root;
}

function nodeIn(folder: string, name: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'node'), `#!/bin/sh\necho "${name}: $*"\n`);
  chmodSync(join(folder, 'node'), 0o755);
}

function run(root: string, program: string, path: string): { out: string; error: string; code: number | null } {
  const { stdout, stderr, status } = spawnSync('/bin/sh', [join(root, 'bin', program), 'an argument'], {
    encoding: 'utf8',
    env: { PATH: path },
  });
  return { out: stdout.trim(), error: stderr.trim(), code: status };
}

describe.each(programs)('a wrapper that runs as %s', (program) => {
  test('the wrapper prefers the Node below the package to the one next to it and the one in PATH', () => {
    const modules = join(emptyFolder(), 'node_modules');
    const root = packageIn(join(modules, 'chartpilot'));
    const path = `${emptyFolder()}:/usr/bin:/bin`;
    nodeIn(path.split(':')[0]!, 'in PATH');
    nodeIn(join(modules, packaged, 'bin'), 'beside');
    const flags = new Map([
      ['pilot-agent', `--max-semi-space-size=1 -r ${root}/bin/small-memory.cjs `],
      ['pilot-discovery', `--max-semi-space-size=16 -r ${root}/bin/later-compilers.cjs `],
    ]);
    const memoryFlag = flags.get(program) ?? '';
    const expected = `--inspect-port=192.0.2.1:9229 ${memoryFlag}-r ${root}/bin/node-version.cjs ${root}/dist/${program}.mjs an argument`;
    expect(run(root, program, path).out).toBe(`beside: ${expected}`);
    nodeIn(join(root, 'node_modules', packaged, 'bin'), 'below');
    expect(run(root, program, path).out).toBe(`below: ${expected}`);
  });

  test('the wrapper runs the Node in PATH if there is no packaged Node, and ignores folders next to a checkout', () => {
    const parent = emptyFolder();
    const root = packageIn(join(parent, 'chartpilot'));
    nodeIn(join(parent, packaged, 'bin'), 'of a stranger');
    nodeIn(join(parent, 'tools'), 'in PATH');
    expect(run(root, program, `${join(parent, 'tools')}:/usr/bin:/bin`).out).toMatch(/^in PATH: /);
  });

  test('the wrapper finds its folder for any exported CDPATH', () => {
    const parent = emptyFolder();
    packageIn(join(parent, 'chartpilot'));
    nodeIn(join(parent, 'tools'), 'in PATH');
    // The launcher has a relative path, and a folder of the same name exists elsewhere.
    const otherFolder = emptyFolder();
    mkdirSync(join(otherFolder, 'chartpilot/bin'), { recursive: true });
    for (const CDPATH of [otherFolder, parent]) {
      const { stdout, stderr } = spawnSync('/bin/sh', [join('chartpilot/bin', program)], {
        cwd: parent,
        encoding: 'utf8',
        env: { PATH: `${join(parent, 'tools')}:/usr/bin:/bin`, CDPATH },
      });
      expect(stderr).toBe('');
      expect(stdout.trimEnd()).toMatch(new RegExp(`^in PATH: .* ${parent}/chartpilot/dist/${program}\\.mjs$`));
    }
  });

  test('SIGUSR1 opens no inspector, which would let any local user read the process memory', async () => {
    const root = packageIn(join(emptyFolder(), 'chartpilot'));
    // The program has no signal handler, as if it had just started.
    writeFileSync(join(root, 'dist', `${program}.mjs`), "console.log('begun'); setTimeout(() => {}, 60_000);");
    const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
    const child = spawn('/bin/sh', [join(root, 'bin', program)], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
    await eventually('it has begun', () => output.includes('begun'));
    child.kill('SIGUSR1');
    await eventually('the signal has come', () => /inspector|Debugger/.test(output));
    expect(output).toContain('Starting inspector on 192.0.2.1:9229 failed');
    expect(output).not.toContain('Debugger listening');
  });

  test('NODE_OPTIONS enables the inspector', () => {
    const root = packageIn(join(emptyFolder(), 'chartpilot'));
    const tools = join(emptyFolder(), 'tools');
    nodeIn(tools, 'in PATH');
    const { stdout } = spawnSync('/bin/sh', [join(root, 'bin', program)], {
      encoding: 'utf8',
      env: { PATH: `${tools}:/usr/bin:/bin`, NODE_OPTIONS: '--trace-warnings --inspect=127.0.0.1:0' },
    });
    expect(stdout).toMatch(/^in PATH: /);
    expect(stdout).not.toContain('--inspect-port');
  });

  test('the wrapper runs no programs of the working directory, regardless of PATH', () => {
    const parent = emptyFolder();
    packageIn(join(parent, 'chartpilot'));
    nodeIn(join(parent, 'tools'), 'in PATH');
    const cwd = emptyFolder();
    nodeIn(cwd, 'hostile');
    for (const name of ['dirname', 'readlink']) cpSync(join(cwd, 'node'), join(cwd, name));
    const absolute = `${join(parent, 'tools')}:/usr/bin:/bin`;
    const environments = ['.:', ':', '::', `../${cwd.split('/').at(-1)}:`].map((first) => ({ PATH: first + absolute }));
    for (const env of environments) {
      const { stdout, stderr } = spawnSync(join(parent, 'chartpilot/bin', program), { cwd, encoding: 'utf8', env });
      expect(stderr).toBe('');
      expect(stdout.trimEnd()).toMatch(new RegExp(`^in PATH: .*/dist/${program}\\.mjs$`));
    }
  });

  test('the wrapper exits with 1 and reports that there is no Node', () => {
    const root = packageIn(join(emptyFolder(), 'chartpilot'));
    const tools = emptyFolder();
    for (const tool of ['dirname', 'readlink']) cpSync(`/usr/bin/${tool}`, join(tools, tool));
    const { code, error } = run(root, program, tools);
    expect(code).toBe(1);
    expect(error).toBe(
      `${program}: Node was not found in PATH, and was not installed with ${root}. Install Node 22.22 or newer.`,
    );
  });
});

test('the wrapper skips a Node that cannot be executed, such as one for another system', () => {
  const root = packageIn(join(emptyFolder(), 'chartpilot'));
  const path = emptyFolder();
  nodeIn(path, 'in PATH');
  nodeIn(join(root, 'node_modules', packaged, 'bin'), 'below');
  chmodSync(join(root, 'node_modules', packaged, 'bin/node'), 0o644);
  expect(run(root, 'chartpilot', `${path}:/usr/bin:/bin`).out).toMatch(/^in PATH: /);
});

test.each(['small-memory', 'later-compilers'])('%s only sets V8 flags of the packaged Node', (name) => {
  const script = join(packageRoot(), `bin/${name}.cjs`);
  const run = spawnSync(process.execPath, ['--max-semi-space-size=1', '-r', script, '-e', ''], { encoding: 'utf8' });
  expect(run.stderr).toBe('');
  expect(run.status).toBe(0);
  const flags = [...readFileSync(script, 'utf8').matchAll(/setFlagsFromString\('(--[a-z-]+)=/g)].map(
    ([, flag]) => flag,
  );
  expect(flags.length).toBeGreaterThan(0);
  const v8OptionsText = spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' }).stdout;
  for (const flag of flags) expect(v8OptionsText).toContain(`${flag} (`);
});

describe('the version of Node', () => {
  const script = readFileSync(join(bin, 'node-version.cjs'), 'utf8');

  interface NodeCheck {
    readonly output: string;
    readonly code: number | undefined;
    /** Folder of the compile cache. */
    readonly cacheFolder: string | undefined;
  }

  function checkNode(node: string): NodeCheck {
    const capturedRun = {
      output: '',
      code: undefined as number | undefined,
      cacheFolder: undefined as string | undefined,
    };
    const exitError = new Error('the process has ended');
    const process = {
      versions: { node },
      version: `v${node}`,
      execPath: '/opt/node',
      stderr: { write: (text: string) => (capturedRun.output += text) },
      exit: (code: number) => {
        capturedRun.code = code;
        throw exitError;
      },
    };
    const modules: Record<string, object> = {
      'node:path': { join },
      'node:module': { enableCompileCache: (folder: string) => (capturedRun.cacheFolder = folder) },
    };
    try {
      const context = { process, require: (name: string) => modules[name], __dirname: bin };
      runInContext(script, createContext(context));
    } catch (error) {
      if (error !== exitError) throw error;
    }
    return capturedRun;
  }

  test('a Node older than in package.json is rejected with its version and instructions', () => {
    const { engines } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
      engines: { node: string };
    };
    expect(engines.node).toBe('>=22.22');
    for (const node of ['22.22.0', '22.23.1', '23.0.0', '24.21.0', '100.1.0']) {
      expect(checkNode(node), node).toEqual({
        ...{ output: '', code: undefined },
        cacheFolder: join(packageRoot(), 'dist/compile-cache'),
      });
    }
    for (const node of ['22.21.9', '22.3.0', '20.99.0', '4.9.1']) {
      const { output, code, cacheFolder } = checkNode(node);
      expect([code, cacheFolder], node).toEqual([1, undefined]);
      expect(output).toBe(
        `chartpilot needs Node 22.22 or newer; /opt/node is v${node}.\n` +
          '  → Put a newer one into PATH, or install chartpilot with its optional dependencies: Node 24 is one of them.\n',
      );
    }
  });
});
