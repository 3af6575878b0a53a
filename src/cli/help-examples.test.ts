/** The examples in `--help` of all commands work as shown. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { eventually } from '../../test/harness/eventually.ts';
import { programFile } from '../../test/harness/program-files.ts';
import { packageRoot } from '../runtime/package-root.ts';

const root = packageRoot();
const folder = mkdtempSync(join(tmpdir(), 'chartpilot-examples-'));
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
const processes = new Set<ChildProcess>();
afterAll(() => {
  for (const child of processes) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

const programs = ['pilot-agent', 'pilot-discovery', 'chartpilot'] as const;
const bin = join(folder, 'bin');
mkdirSync(bin);
for (const program of programs) {
  writeFileSync(join(bin, program), `#!/bin/sh\nexec '${process.execPath}' '${programFile(program)}' "$@"\n`, {
    mode: 0o755,
  });
}
writeFileSync(
  join(bin, 'kubectl'),
  '#!/bin/sh\nif [ "$1" = get ]; then cat mesh/routes.yaml; else cat > applied; fi\n',
  {
    mode: 0o755,
  },
);
cpSync(join(root, 'examples/mesh'), join(folder, 'mesh'), { recursive: true });
cpSync(join(root, 'test/fixtures/traces-of-versions/version-2.trace'), join(folder, 'agent.trace'));
cpSync(join(root, 'examples/generate/reservation.samples.ts'), join(folder, 'checkout.samples.ts'));
for (const file of ['lock.machine.js', 'lock.samples.js'])
  cpSync(join(root, 'examples/door-lock', file), join(folder, file));
writeFileSync(
  join(folder, 'checkout.machine.ts'),
  `export { reservationMachine as checkoutMachine } from '${join(root, 'examples/generate/reservation.machine.ts')}';\n`,
);
writeFileSync(
  join(folder, 'supervisor.machine.ts'),
  `export { supervisorMachine } from '${join(root, 'machines/agent/envoy/supervisor.machine.ts')}';\n`,
);
mkdirSync(join(folder, 'ca'));

/** Runs a command line in the folder of the examples. */
function start(line: string): ChildProcess {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  // Prevents access to the cluster of the user that runs the tests.
  const KUBECONFIG = join(folder, 'kubeconfig');
  const env = {
    PATH: `${bin}:${PATH}`,
    HOME,
    NODE_COMPILE_CACHE,
    KUBECONFIG,
    DISABLE_ENVOY: 'true',
    POD_NAMESPACE: 'default',
  };
  const child = spawn('sh', ['-c', line], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  processes.add(child);
  child.once('exit', () => processes.delete(child));
  return child;
}

async function run(line: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = start(line);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')]);
  return { code, stdout, stderr };
}

/** Lines of a section; continued lines are joined. */
function linesOf(help: string, title: RegExp): readonly string[] {
  const section = help.split(/\n\n/).find((candidate) => title.test(candidate)) ?? '';
  return section
    .replaceAll(/ \\\n\s+/g, ' ')
    .split('\n')
    .slice(1);
}

const helps = await Promise.all(
  programs.map(async (program) => {
    const { stdout } = await run(`${program} --help`);
    const names = linesOf(stdout, /^Commands:/).flatMap((line) => /^ {2}([a-z-]+) [[<]/.exec(line)?.[1] ?? []);
    const commands = names.filter((name) => name !== 'help').map((name) => `${program} ${name}`);
    return Promise.all(commands.map(async (command) => ({ command, help: (await run(`${command} --help`)).stdout })));
  }),
);
const examples = helps
  .flat()
  .flatMap(({ command, help }) => linesOf(help, /^Examples?:/).map((line) => ({ command, line: line.trim() })));

/** Programs that run until they are stopped, and the line that reports readiness. */
const servers: Readonly<Record<string, { readonly overrides: string; readonly ready: RegExp }>> = {
  'pilot-agent proxy': { overrides: '--statusPort 0', ready: /pid=\d+/ },
  'pilot-discovery discovery': {
    overrides: '--grpcAddr 127.0.0.1:0 --httpAddr 127.0.0.1:0 --monitoringAddr 127.0.0.1:0 --secureGRPCAddr=',
    ready: /127\.0\.0\.1:\d+/,
  },
  'chartpilot visualize': { overrides: '--port 0', ready: /http:\/\/127/ },
  'pilot-agent wait': { overrides: '', ready: /Waiting for Envoy/ },
};
/** Examples that send requests to a port that is unused in this test. */
const needsServer = /^pilot-\S+ (request|changes|certificates)|--attach|--otlp/;
/** Examples that need a cluster; test/cluster/check-installation.test.ts runs them. */
const needsCluster = /^pilot-discovery check/;
/** A trace of an older version may deviate. */
const mayDiffer = /^chartpilot (check|replay) /;

describe('examples of --help', () => {
  test('exist for each command except version, completion and the conformance target', () => {
    const withoutExample = helps
      .flat()
      .filter(({ command }) => !examples.some((example) => example.command === command));
    expect(withoutExample.map(({ command }) => command.split(' ')[1]).sort()).toEqual([
      ...['completion', 'completion', 'version', 'version', 'xds-conformance'],
    ]);
  });

  const servesUntilStopped = ({ command, line }: { command: string; line: string }): boolean =>
    command in servers && !/--output|--attach/.test(line);

  test.each(examples.filter((example) => !servesUntilStopped(example)))('work as shown: $line', async ({ line }) => {
    const { code, stderr } = await run(line);
    expect(stderr).not.toMatch(/unknown|See '/);
    if (needsServer.test(line)) expect(stderr).toMatch(/ECONNREFUSED|404|^$/);
    else if (needsCluster.test(line))
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('cluster cannot be read') });
    else expect(mayDiffer.test(line) ? [0, 1] : [0], stderr).toContain(code);
  });

  test.each(examples.filter(servesUntilStopped))('start a server: $line', async ({ command, line }) => {
    const { overrides, ready } = servers[command]!;
    const child = start(`exec ${line} ${overrides}`);
    let output = '';
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (output += chunk));
    await eventually('the program is ready or ends', () => ready.test(output) || child.exitCode !== null);
    expect(output).toMatch(ready);
    if (child.kill('SIGTERM')) await once(child, 'close');
    expect(output).not.toMatch(/unknown flag| flags=|See '/);
  });
});

test('each command lists its exit codes', () => {
  const withoutExitCodes = helps.flat().filter(({ help }) => !/^Exit codes:$/m.test(help));
  expect(withoutExitCodes.map(({ command }) => command)).toEqual([
    ...['pilot-agent completion', 'pilot-agent version', 'pilot-discovery version', 'pilot-discovery completion'],
    'pilot-discovery xds-conformance',
  ]);
});
