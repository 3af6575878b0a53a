import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { formatTraceLine, type TraceLine } from '../../src/runtime/trace/trace.ts';
import { startSampleService } from '../sample/sample-service.ts';
import { eventually } from './eventually.ts';
import { followTrace } from './follow-trace.ts';
import { freePorts, isFree } from './free-ports.ts';
import { envoysAmong, leftovers, testRunVariable } from './host-processes.ts';
import { examplePorts, MeshDirectory } from './mesh-directory.ts';
import { probe } from './probe.ts';
import { Program } from './program.ts';
import { programFile } from './program-files.ts';

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'chartpilot-harness-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('the processes of a test run and their children are killed with the run', async () => {
  const testRun = randomUUID();
  const script = `import { Program } from ${JSON.stringify(join(import.meta.dirname, 'program.ts'))};
    const env = { ...process.env, ${testRunVariable}: ${JSON.stringify(testRun)} };
    const run = (args) => Program.run('sleeper', '/bin/sh', { args: ['-c', ...args], env, cwd: '.' });
    const ended = run(['exit 0']);
    run(['sleep 60 & sleep 60']);
    run(['trap "" TERM HUP INT; sleep 60; sleep 60']);
    await ended.exited;
    process.stdout.write('started\\n');
    setInterval(() => {}, 1_000);`;
  const runner = Program.run('runner', process.execPath, { args: ['-e', script], env: process.env, cwd: '.' });
  await runner.line(/^started$/);
  await eventually('all run', () => leftovers(testRun, new Set()).length === 5);
  runner.signal('SIGKILL');
  await eventually('nothing is left', () => leftovers(testRun, new Set()).length === 0);
});

describe('freePorts', () => {
  test('returns distinct ports that can be listened on, outside the range of outgoing connections', async () => {
    const ports = await freePorts(20);
    expect(new Set(ports).size).toBe(20);
    expect(Math.max(...ports)).toBeLessThan(32_768);
    expect(await Promise.all(ports.map(isFree))).not.toContain(false);
  });

  test('returns a port only once to all processes until the process with the port exits', async () => {
    const script = `import { freePorts } from ${JSON.stringify(join(import.meta.dirname, 'free-ports.ts'))};
      Math.random = () => CHANCE;
      const given = (await freePorts(1).catch(() => ['none']))[0];
      process.stdout.write(String(given) + '\\n');
      setInterval(() => {}, 1_000);`;
    let chance = 0;
    const startPicker = (): Program => {
      const args = ['-e', script.replace('CHANCE', String(chance))];
      return Program.run('ports', process.execPath, { args, env: process.env, cwd: '.' });
    };
    // The port that this number selects may belong to another test.
    const [first, port] = await eventually('one that nobody has', async () => {
      chance = Math.random();
      const program = startPicker();
      const pickedPort = await program.line(/^(\d+|none)$/);
      if (pickedPort !== 'none') return [program, pickedPort] as const;
      await program.stop();
      return undefined;
    });
    const secondPicker = startPicker();
    expect(await secondPicker.line(/^(\d+|none)$/)).toBe('none');
    await first.stop();
    const third = startPicker();
    expect(await third.line(/^(\d+|none)$/)).toBe(port);
    await Promise.all([secondPicker.stop(), third.stop()]);
  });

  test('does not count a port as free while a server listens on it', async () => {
    const [port] = await freePorts(1);
    const server = createServer().listen(port, '127.0.0.1');
    onTestFinished(() => void server.close());
    await eventually('the port is taken', async () => !(await isFree(port!)));
  });
});

describe('eventually', () => {
  test('returns the result of the first successful attempt', async () => {
    let tries = 0;
    expect(await eventually('three tries', () => (++tries < 3 ? undefined : tries), { everyMs: 1 })).toBe(3);
  });

  test('reports its condition and the error of the last attempt', async () => {
    const pendingWait = eventually('the impossible', () => Promise.reject(new Error('not today')), { deadlineMs: 10 });
    await expect(pendingWait).rejects.toThrow('waited 10 ms in vain for: the impossible: not today');
  });

  test('stops early if no attempt can succeed', async () => {
    const pendingWait = eventually('an answer', () => false, { deadlineMs: 60_000, hopeless: () => 'it has ended' });
    await expect(pendingWait).rejects.toThrow('it has ended');
  });
});

describe('a program of the harness', () => {
  const node = (script: string): Program =>
    Program.run('script', process.execPath, { args: ['-e', script], env: process.env, cwd: tmpdir() });

  test('provides its output and exit status', async () => {
    const program = node('console.log("ready 1"); console.error("trouble"); process.exitCode = 3');
    expect(await program.line(/^ready/)).toBe('ready 1');
    expect(await program.exited).toEqual({ code: 3, signal: null });
    expect(program.lines.toSorted()).toEqual(['ready 1', 'trouble']);
  });

  test('is reported with its last output if it exits before the awaited output', async () => {
    const program = node('console.log("cannot bind"); process.exit(1)');
    await expect(program.line(/^ready/)).rejects.toThrow(/exit code 1.*\ncannot bind/);
  });

  test('is killed at the deadline if it ignores SIGTERM', async () => {
    const program = node('process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("up")');
    await program.line(/up/);
    expect(await program.stop({ deadlineMs: 50 })).toEqual({ code: null, signal: 'SIGKILL' });
  });
});

describe('the copy of the example mesh', () => {
  const ports = { ...examplePorts, http: examplePorts.https, https: 12_345 };

  test('has its own ports and certificates even if a new port equals an old one', () => {
    const mesh = new MeshDirectory(temporaryDirectory(), ports, '/tmp/certificates');
    const gateway = mesh.read('gateway.yaml');
    expect([...gateway.matchAll(/number: (\d+)/g)].map(([, port]) => Number(port))).toEqual([18443, 12_345]);
    expect(gateway).toContain('serverCertificate: /tmp/certificates/tls.crt');
    expect(mesh.read('service.yaml')).toContain(`http: ${examplePorts.v2}`);
  });

  test('has no validation problem', () => {
    const mesh = new MeshDirectory(temporaryDirectory(), ports, '/tmp/certificates');
    const files = ['gateway.yaml', 'routes.yaml', 'service.yaml', 'sidecar.yaml'].map((name) =>
      readConfigFile(name, mesh.read(name), { creationTimestamp: 0 }),
    );
    expect(files.flatMap(({ problems }) => problems)).toEqual([]);
    expect(files.flatMap(({ configs }) => configs)).toHaveLength(7);
  });

  test('receives new weights without any other change', () => {
    const mesh = new MeshDirectory(temporaryDirectory(), ports, '/tmp/certificates');
    const previousText = mesh.read('routes.yaml');
    mesh.setWeights({ v1: 25, v2: 75 });
    const textAfter = mesh.read('routes.yaml');
    expect(textAfter).toBe(previousText.replace('weight: 90', 'weight: 25').replace('weight: 10', 'weight: 75'));
    expect(textAfter).not.toBe(previousText);
  });
});

test('followTrace reads a trace while it is being written, including partial lines and a rotation', async () => {
  const path = join(temporaryDirectory(), 'x.trace.ndjson');
  const seenSeqs: number[] = [];
  const stop = followTrace(path, (line: TraceLine) => 'seq' in line && seenSeqs.push(line.seq));
  const record = (seq: number): string => formatTraceLine({ seq, t: seq, kind: 'timer', actor: 'a', timer: 't' });
  writeFileSync(path, record(1) + record(2).slice(0, 10));
  await eventually('the first line', () => seenSeqs.length === 1);
  appendFileSync(path, record(2).slice(10));
  await eventually('the second line', () => seenSeqs.length === 2);
  renameSync(path, `${path}.1`);
  writeFileSync(path, record(3));
  await eventually('the line after the rotation', () => seenSeqs.length === 3);
  appendFileSync(path, record(4));
  stop();
  expect(seenSeqs).toEqual([1, 2, 3, 4]);
});

test('leftovers finds a process with the mark of a test run while the process is running', async () => {
  const testRun = randomUUID();
  const child = spawn('sh', ['-c', 'sleep 30; true'], { env: { ...process.env, [testRunVariable]: testRun } });
  // Finds the shell and its child, which inherits the mark.
  await eventually('both are found', () => leftovers(testRun, new Set()).length === 2);
  for (const line of leftovers(testRun, new Set())) process.kill(Number(/\d+/.exec(line)![0]), 'SIGKILL');
  child.kill('SIGKILL');
  await eventually('none is found', () => leftovers(testRun, new Set()).length === 0);
});

test('an Envoy process is identified by base ID and epoch, unless it only validates or prints its version', () => {
  const envoy = { pid: 7, parentPid: 1, testRun: undefined };
  const servingEnvoy = { ...envoy, command: ['/opt/envoy', '-c', 'x', '--restart-epoch', '3', '--base-id', '12'] };
  const validating = { ...envoy, command: ['/opt/envoy', '--mode', 'validate', '-c', 'x'] };
  const printing = ['--version', '--hot-restart-version'].map((flag) => ({
    ...envoy,
    command: ['/opt/envoy', '--restart-epoch', '0', '--base-id', '0', flag],
  }));
  expect(envoysAmong([servingEnvoy, validating, ...printing])).toEqual([{ ...servingEnvoy, epoch: 3, baseId: 12 }]);
});

test('probe reports the result of one request on a new connection', async () => {
  const service = await startSampleService({ version: 'v1' });
  const target = { host: '127.0.0.1', port: service.port, authority: 'sample.localhost' };
  expect((await probe(target)).outcome).toMatchObject({ ok: true, version: 'v1' });
  await service.close();
  expect((await probe(target)).outcome).toMatchObject({ ok: false, code: 'ECONNREFUSED' });
});

describe('programFile selects', () => {
  const build = [
    'src/cli/pilot-agent.ts',
    'machines/a.ts',
    'package-lock.json',
    'dist/pilot-agent.mjs',
    'dist/THIRD-PARTY.txt',
  ];

  /** Simulates a checkout whose files were written one after the other. */
  const checkout = (...files: string[]): string => {
    const root = temporaryDirectory();
    for (const [fileIndex, file] of files.entries()) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), '');
      utimesSync(join(root, file), fileIndex, fileIndex);
    }
    return root;
  };

  test.each([
    ['the build', build, 'dist/pilot-agent.mjs'],
    ['the build, even if tests are newer', [...build, 'src/a.test.ts'], 'dist/pilot-agent.mjs'],
    ['the sources if one is newer', [...build, 'src/model/a.ts'], 'src/cli/pilot-agent.ts'],
    ['the sources if a machine is newer', [...build, 'machines/agent/a.ts'], 'src/cli/pilot-agent.ts'],
    ['the sources if an input of generated code is newer', [...build, 'src/gen/a.binpb'], 'src/cli/pilot-agent.ts'],
    ['the sources if other libraries were installed', [...build, 'package-lock.json'], 'src/cli/pilot-agent.ts'],
    ['the sources if the build is incomplete', build.slice(0, -1), 'src/cli/pilot-agent.ts'],
    ['the sources if there is no build', build.slice(0, -2), 'src/cli/pilot-agent.ts'],
    [
      'the sources if one changed during the build',
      [...build.slice(0, -1), 'src/b.ts', ...build.slice(-1)],
      'src/cli/pilot-agent.ts',
    ],
  ])('%s', (_, files, expected) => {
    const root = checkout(...files);
    expect(programFile('pilot-agent', root)).toBe(join(root, expected));
  });
});
