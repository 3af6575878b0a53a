/** Output of the three programs with readers that are slow, stop early, or do not read. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../test/harness/eventually.ts';
import { NamedPipe } from '../../test/harness/named-pipe.ts';
import { packageRoot } from '../runtime/package-root.ts';

const programs = ['pilot-agent', 'pilot-discovery', 'chartpilot'] as const;
const bin = (program: string): string => join(packageRoot(), 'bin', program);

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'chartpilot-output-test-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

/** Output that a slow reader receives. */
async function readSlowly(pipe: NamedPipe, child: ChildProcess): Promise<{ text: string; code: number | null }> {
  const childExit = once(child, 'exit') as Promise<[number | null]>;
  pipe.handedOver();
  // Longer than a program waits for its reader at exit.
  await sleep(1_500);
  let text = '';
  for (let chunk = pipe.read(20_000); chunk !== undefined; chunk = pipe.read(20_000)) {
    text += chunk;
    await sleep(chunk === '' ? 10 : 1);
  }
  pipe.leave();
  return { text, code: (await childExit)[0] };
}

/** A mesh with this number of errors. */
function manyErrors(count: number): string {
  const path = folder();
  const object = (i: number): string =>
    `apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: wrong-${i}}\nspec: {hosts: [a.test], nonsense: 1}\n`;
  writeFileSync(join(path, 'mesh.yaml'), Array.from({ length: count }, (_, i) => object(i)).join('---\n'));
  return path;
}

function folderWith(text: string): string {
  const path = folder();
  writeFileSync(join(path, 'mesh.yaml'), text);
  return path;
}

async function serverOf(body: string): Promise<number> {
  const server = createServer((_, response) => response.end(body)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test('validate writes every error to a slow reader', async () => {
  const mesh = manyErrors(3_000);
  const pipe = new NamedPipe();
  const child = spawn(bin('pilot-discovery'), ['validate', mesh], { stdio: ['ignore', pipe.writeEnd, 'ignore'] });
  const { text, code } = await readSlowly(pipe, child);
  const lines = text.trimEnd().split('\n');
  expect(new Set(lines.map((line) => /wrong-\d+/.exec(line)?.[0])).size).toBe(3_000);
  expect(code).toBe(1);
});

test('validate writes its entire output to a pipe created by Node', async () => {
  const child = spawn(bin('pilot-discovery'), ['validate', '--format', 'json', manyErrors(2_000)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await sleep(1_500);
  let text = '';
  for await (const chunk of child.stdout) text += chunk;
  expect(JSON.parse(text).problems.length).toBeGreaterThanOrEqual(2_000);
});

test('the request command prints a response of any length', async () => {
  const body = `${'0123456789'.repeat(100_000)}\n`;
  const port = await serverOf(body);
  const script = `
    import { requestCommand } from ${JSON.stringify(join(packageRoot(), 'src/cli/commands/request.ts'))};
    import { endProgram } from ${JSON.stringify(join(packageRoot(), 'src/runtime/output/standard-streams.ts'))};
    await requestCommand({ what: 'x', host: '127.0.0.1', defaultPort: ${port}, allowedPorts: [], example: '', failed: 1 })
      .parseAsync(['GET', '/'], { from: 'user' });
    await endProgram();`;
  const pipe = new NamedPipe();
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', pipe.writeEnd, 'inherit'],
  });
  const { text, code } = await readSlowly(pipe, child);
  expect(text).toBe(body);
  expect(code).toBe(0);
});

describe.each(programs)('the output of %s', (program) => {
  const run = (stdio: ('ignore' | 'pipe' | number)[], ...args: string[]) =>
    spawnSync(bin(program), args, { stdio: stdio as never, encoding: 'utf8', timeout: 60_000 });

  test('ends without an error message if its reader closes the pipe', () => {
    const pipe = new NamedPipe();
    pipe.leave();
    const { stderr, signal } = run(['ignore', pipe.writeEnd, 'pipe'], '--help');
    pipe.handedOver();
    expect(stderr).toBe('');
    expect(signal).toBe(null);
  });

  test('is reported if it does not fit on the disk, and the program fails', () => {
    const fullDisk = openSync('/dev/full', 'w');
    const { stderr, status } = run(['ignore', fullDisk, 'pipe'], '--help');
    closeSync(fullDisk);
    expect(stderr).toMatch(/^standard output cannot be written: ENOSPC.*\n$/);
    expect(status).toBe(1);
  });

  test('results in the same exit code if its error message cannot be written', () => {
    const fullDisk = openSync('/dev/full', 'w');
    const { status } = run(['ignore', fullDisk, fullDisk], 'no-such-command', '--nonsense');
    closeSync(fullDisk);
    expect(status).toBe(run(['ignore', 'ignore', 'ignore'], 'no-such-command', '--nonsense').status);
  });
});

test.each([
  ['errors', [manyErrors, 1]],
  ['more errors than fit into a pipe', [manyErrors, 3_000]],
  ['that all files are valid', [() => folderWith('kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n'), 0]],
] as const)(
  'pilot-discovery validate exits with a different code than for invalid files if it cannot write %s',
  (_, [mesh, count]) => {
    const fullDisk = openSync('/dev/full', 'w');
    const { stderr, status } = spawnSync(bin('pilot-discovery'), ['validate', '--format', 'json', mesh(count)], {
      stdio: ['ignore', fullDisk, 'pipe'],
      encoding: 'utf8',
    });
    closeSync(fullDisk);
    expect(stderr).toMatch(/^standard output cannot be written: ENOSPC.*\n$/);
    expect(status).toBe(3);
  },
);

test('a command stops computing a long output if its reader closes the pipe', () => {
  const mesh = manyErrors(3_000);
  const { stdout, stderr } = spawnSync('sh', ['-c', `'${bin('pilot-discovery')}' validate '${mesh}' | head -1`], {
    encoding: 'utf8',
  });
  expect(stdout.split('\n')).toHaveLength(2);
  expect(stderr).not.toMatch(/EPIPE| at /);
});

test('validate reads standard input to its end, even from a slow writer', async () => {
  const child = spawn(bin('pilot-discovery'), ['validate', '-'], { stdio: ['pipe', 'ignore', 'pipe'] });
  let errorOutput = '';
  child.stderr.on('data', (chunk) => {
    errorOutput += String(chunk);
  });
  const childClosed = once(child, 'close');
  await sleep(1_000);
  child.stdin.write('apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: b}\n');
  await sleep(500);
  child.stdin.end(
    'spec: {hosts: [a.example.com], resolution: NONE, ports: [{number: 80, name: http, protocol: HTTP}]}\n',
  );
  expect([(await childClosed)[0], errorOutput]).toEqual([0, expect.stringMatching(/1 valid object/)]);
});

test('a program reports on another output that its log cannot be written', async () => {
  const localFlags = ['--registries=', '--grpcAddr', '127.0.0.1:0', '--httpAddr', '127.0.0.1:0', '--monitoringAddr='];
  const child = spawn(bin('pilot-discovery'), ['discovery', ...localFlags, '--log_target', '/dev/full'], {
    cwd: folder(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let errorOutput = '';
  child.stderr.on('data', (chunk) => {
    errorOutput += String(chunk);
  });
  const times = (): number => errorOutput.match(/cannot write log to \/dev\/full: ENOSPC/g)?.length ?? 0;
  await eventually('it is reported', () => times() > 0);
  // Log lines at the end are not repeated.
  const childClosed = once(child, 'close');
  child.kill('SIGTERM');
  await childClosed;
  expect(times()).toBe(1);
});
