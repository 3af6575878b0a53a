/** The real agent with a fake Envoy, while log, trace and outputs fail in every way: neither agent nor Envoy may exit or block. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAdminClient } from '../../src/agent/admin/admin-client.ts';
import type { LogEventId } from '../../src/runtime/log-events/log-events.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { envoyBinary, writeAdminOnlyBootstrap } from '../fixtures/real-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf } from '../harness/logged-line.ts';
import { NamedPipe } from '../harness/named-pipe.ts';
import { isFull } from '../harness/size-of-run.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { standInBinary } from '../stand-in/control.ts';

interface Agent {
  readonly folder: string;
  readonly process: ChildProcess;
  live(epoch: number): Promise<void>;
  /** Fails unless the agent responds to probes, hot restarts on SIGHUP, and exits with 0 on SIGTERM. */
  isWell(): Promise<void>;
}

async function startAgent(options: {
  out: number;
  err?: number;
  env?: NodeJS.ProcessEnv;
  flags?: (folder: string) => readonly string[];
}): Promise<Agent> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-sinks-'));
  const [adminPort, statusPort] = (await freePorts(2)) as [number, number];
  const args = [
    ...['proxy', 'router', '--binaryPath', standInBinary],
    ...['--customConfigFile', writeAdminOnlyBootstrap(folder, adminPort)],
    ...['--proxyAdminPort', String(adminPort), '--statusPort', String(statusPort)],
    ...['--drainDuration', '1s', '--parentShutdownDuration', '2s', '--terminationDrainDuration', '100ms'],
    ...['--runDir', join(folder, 'run'), ...(options.flags?.(folder) ?? [])],
  ];
  const child = spawn(join(packageRoot(), 'bin/pilot-agent'), args, {
    cwd: folder,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', options.out, options.err ?? options.out],
    detached: true,
  });
  const exitEvent = once(child, 'exit') as Promise<[number | null, string | null]>;
  onTestFinished(async () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // The agent has exited, as expected.
    }
    await exitEvent;
    rmSync(folder, { recursive: true });
  });
  const admin = createAdminClient('127.0.0.1', adminPort);
  const status = createAdminClient('127.0.0.1', statusPort);
  const exitMessage = (): string | undefined =>
    child.exitCode === null ? undefined : `it ended with ${child.exitCode}`;
  const live = async (epoch: number): Promise<void> => {
    const serves = `istio_agent_envoy_serving{epoch="epoch-${epoch}"} 1`;
    const isLive = async () => (await status.get('/stats/prometheus')).body.includes(serves);
    await eventually(`epoch ${epoch} serves`, isLive, { hopeless: exitMessage });
    const isReady = async () => (await status.get('/healthz/ready')).status === 200;
    await eventually('it is ready', isReady, { hopeless: exitMessage });
  };
  const isWell = async (): Promise<void> => {
    const { epoch } = await admin.serverInfo();
    child.kill('SIGHUP');
    await live(epoch + 1);
    child.kill('SIGTERM');
    const [code, signal] = await Promise.race([exitEvent, sleep(60_000, ['it does not end'])]);
    expect([code, signal]).toEqual([0, null]);
  };
  return { folder, process: child, live, isWell };
}

function openFile(path: string): number {
  const fd = openSync(path, 'w');
  onTestFinished(() => closeSync(fd));
  return fd;
}

function pipe(): NamedPipe {
  const namedPipe = new NamedPipe();
  onTestFinished(() => namedPipe.leave());
  return namedPipe;
}

describe('standard output and error of the agent', () => {
  test('do not stop the agent on a full device, even together with an unread trace', async () => {
    const agent = await startAgent({
      out: openFile('/dev/full'),
      flags: (folder) => {
        spawnSync('mkfifo', [join(folder, 'trace')]);
        return ['--trace', join(folder, 'trace')];
      },
    });
    await agent.live(0);
    await agent.isWell();
  });

  test.runIf(isFull)('do not stop the agent when their reader closes them', async () => {
    const outputPipe = pipe();
    const agent = await startAgent({ out: outputPipe.writeEnd });
    outputPipe.handedOver();
    await agent.live(0);
    outputPipe.leave();
    await agent.isWell();
  });

  test('buffer unread lines until a reader drains them', async () => {
    const outputPipe = pipe();
    const agent = await startAgent({ out: outputPipe.writeEnd });
    await agent.live(0);
    outputPipe.fill();
    outputPipe.handedOver();
    agent.process.kill('SIGHUP');
    await agent.live(1);
    expect((await fetchReady(agent)).every((ms) => ms < 500)).toBe(true);
    let text = '';
    const reads = setInterval(() => (text += outputPipe.read() ?? ''), 5);
    onTestFinished(() => clearInterval(reads));
    await agent.isWell();
    clearInterval(reads);
    for (let chunk = outputPipe.read(); chunk; chunk = outputPipe.read()) text += chunk;
    const live = linesOf(text.split('\n'), 'restart.ended.live').map((line) => /epoch=(\S+)/.exec(line)![1]);
    expect(live).toEqual(['epoch-0', 'epoch-1', 'epoch-2']);
  });

  test.runIf(isFull)('do not delay the exit of the agent while they are unread', async () => {
    const outputPipe = pipe();
    const agent = await startAgent({ out: outputPipe.writeEnd });
    await agent.live(0);
    outputPipe.fill();
    outputPipe.handedOver();
    await agent.isWell();
  });
});

function statusPort({ process: { spawnargs } }: Agent): string {
  return spawnargs[spawnargs.indexOf('--statusPort') + 1]!;
}

async function metrics(agent: Agent): Promise<string> {
  return (await fetch(`http://127.0.0.1:${statusPort(agent)}/stats/prometheus`)).text();
}

/** Returns the minimum duration of a few probes, to exclude the load of other processes. */
async function fetchReady(agent: Agent): Promise<number[]> {
  const port = statusPort(agent);
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const probe = async () => (await fetch(`http://127.0.0.1:${port}/healthz/ready`)).arrayBuffer();
    times.push(await msWithoutQueueing([process.pid, agent.process.pid!], probe));
  }
  return times;
}

function hasLine(log: string, event: LogEventId, fields: Record<string, RegExp>): boolean {
  return linesOf(readFileSync(log, 'utf8').split('\n'), event, fields).length > 0;
}

/** Whether a log reports that the epoch is live. */
function isLive(log: string, epoch: string): boolean {
  return linesOf(readFileSync(log, 'utf8').split('\n'), 'restart.ended.live', { epoch }).length > 0;
}

test.runIf(isFull)(
  'a log file that is moved away is recreated without loss, even if its folder was removed',
  async () => {
    const log = (folder: string): string => join(folder, 'logs/agent.log');
    const flags = (folder: string): string[] => {
      mkdirSync(join(folder, 'logs'));
      return ['--log_target', log(folder)];
    };
    const agent = await startAgent({ out: openFile('/dev/null'), flags });
    const [lies, movedLog] = [log(agent.folder), join(agent.folder, 'moved.log')];
    await agent.live(0);
    renameSync(lies, movedLog);
    agent.process.kill('SIGHUP');
    await agent.live(1);
    expect(isLive(movedLog, 'epoch-0')).toBe(true);
    await eventually('the new one has it', () => isLive(lies, 'epoch-1'));
    rmSync(join(agent.folder, 'logs'), { recursive: true });
    await agent.isWell();
  },
);

describe('a trace of the agent', () => {
  const flags = (folder: string): string[] => ['--trace', join(folder, 'a/agent.trace')];
  const startWithTrace = (outputFd: number, ...extraArgs: string[]): Promise<Agent> =>
    startAgent({
      out: outputFd,
      flags: (folder) => {
        mkdirSync(join(folder, 'a'));
        return [...flags(folder), ...extraArgs];
      },
    });

  const check = (...args: string[]): string => {
    const { stdout, stderr } = spawnSync(join(packageRoot(), 'bin/chartpilot'), ['check', ...args], {
      encoding: 'utf8',
    });
    return stdout + stderr;
  };

  test.runIf(isFull)(
    'continues in a new complete file if it is moved away, even while the log is on a full disk',
    async () => {
      const agent = await startWithTrace(openFile('/dev/null'), '--log_target', '/dev/full');
      const trace = join(agent.folder, 'a/agent.trace');
      await agent.live(0);
      renameSync(trace, `${trace}.moved`);
      await agent.isWell();
      expect(check(trace)).toContain('accepted');
      expect(check(`${trace}.moved`)).toContain('accepted');
      expect(existsSync(`${trace}.1`)).toBe(false);
    },
  );

  test('is reported in the log if its folder is removed, and continues when the folder is restored', async () => {
    const log = join(mkdtempSync(join(tmpdir(), 'chartpilot-sinks-log-')), 'log');
    onTestFinished(() => rmSync(join(log, '..'), { recursive: true }));
    const agent = await startWithTrace(openFile(log));
    const folder = join(agent.folder, 'a');
    await agent.live(0);
    rmSync(folder, { recursive: true });
    agent.process.kill('SIGHUP');
    await agent.live(1);
    expect(await metrics(agent)).toContain('istio_agent_lost_lines_total{of="log"} 0');
    await eventually('it says so', () => hasLine(log, 'trace.unwritable', { reason: /ENOENT/ }));
    mkdirSync(folder);
    agent.process.kill('SIGHUP');
    await agent.live(2);
    await eventually('it says so', () => hasLine(log, 'trace.resumed', { lost: /\d+/ }));
    expect(await metrics(agent)).toMatch(/istio_agent_lost_lines_total{of="trace"} [1-9]/);
    await agent.isWell();
    expect(check(join(folder, 'agent.trace'))).toContain('accepted');
  });
});

describe('access logs of the real Envoy on an unread standard output', () => {
  test('delay neither a hot restart nor a shutdown, and buffered lines are written completely', async () => {
    const outputPipe = pipe();
    const port = (await freePorts(1))[0]!;
    const flags = (folder: string): string[] => [
      ...['--binaryPath', envoyBinary(), '--concurrency', '1'],
      ...['--customConfigFile', writeAccessLogBootstrap(folder, port)],
    ];
    const agent = await startAgent({ out: outputPipe.writeEnd, flags });
    await agent.live(0);
    outputPipe.fill();
    outputPipe.handedOver();
    // Exceeds the buffers of Envoy, the pipe and the agent.
    for (let i = 0; i < 300; i++) await Promise.all(Array.from({ length: 10 }, (_, n) => request(port, i * 10 + n)));
    await eventually('lines are lost', async () => /lost_lines_total{of="log"} [1-9]/.test(await metrics(agent)));
    agent.process.kill('SIGHUP');
    await agent.live(1);
    await eventually('the first Envoy has ended', () => envoysOf(agent) === 1);
    let text = '';
    const reads = setInterval(() => (text += outputPipe.read() ?? ''), 1);
    onTestFinished(() => clearInterval(reads));
    const lostFields = { output: 'log', lines: /\d/, from: /\d/, to: /\d/ };
    await eventually(
      'the log reports lost lines',
      () => linesOf(text.split('\n'), 'log.linesLost', lostFields).length > 0,
    );
    await request(port, 99_999);
    await agent.isWell();
    clearInterval(reads);
    for (let chunk = outputPipe.read(); chunk; chunk = outputPipe.read()) text += chunk;
    const paths = [...text.matchAll(/^access \/(\d+)\/x{1000}$/gm)].map(([, number]) => Number(number));
    expect(paths.length).toBeGreaterThan(500);
    expect(paths.at(-1)).toBe(99_999);
    expect(text.match(/^access /gm)).toHaveLength(paths.length);
  });

  const textOf = async (url: string): Promise<string> => (await fetch(url)).text();
  const request = (port: number, number: number): Promise<string> =>
    textOf(`http://127.0.0.1:${port}/${number}/${'x'.repeat(1_000)}`);

  function envoysOf({ folder }: Agent): number {
    return readdirSync('/proc').filter((pid) => {
      try {
        const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return basename(program) === 'envoy' && args.some((arg) => arg.startsWith(folder));
      } catch {
        return false;
      }
    }).length;
  }

  /** An Envoy that responds to every request and logs more than a kilobyte for it. */
  function writeAccessLogBootstrap(folder: string, port: number): string {
    const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
    const format = { text_format_source: { inline_string: 'access %REQ(:PATH)%\n' } };
    const manager = {
      '@type': type('filters.network.http_connection_manager.v3.HttpConnectionManager'),
      stat_prefix: 'a',
      access_log: [
        {
          name: 'a',
          typed_config: {
            '@type': type('access_loggers.file.v3.FileAccessLog'),
            ...{ path: '/dev/stdout', log_format: format },
          },
        },
      ],
      http_filters: [{ name: 'r', typed_config: { '@type': type('filters.http.router.v3.Router') } }],
      route_config: {
        virtual_hosts: [
          { name: 'a', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
        ],
      },
    };
    const admin = JSON.parse(readFileSync(join(folder, 'admin-only.json'), 'utf8')) as object;
    const file = join(folder, 'access-log.json');
    const address = { socket_address: { address: '127.0.0.1', port_value: port } };
    const filters = [{ name: 'm', typed_config: manager }];
    const listeners = [{ name: 'l', address, filter_chains: [{ filters }] }];
    writeFileSync(file, JSON.stringify({ ...admin, static_resources: { listeners } }));
    return file;
  }
});

describe('an uncaught error in the agent', () => {
  /** Preloaded into the agent: executes a file's content once. */
  function fault(folder: string): { env: NodeJS.ProcessEnv; happens: (code: string) => void } {
    const [module, order] = [join(folder, 'fault.mjs'), join(folder, 'order')];
    writeFileSync(
      module,
      `import { readFileSync, rmSync } from 'node:fs';
      if (!process.argv[1].includes('stand-in')) setInterval(() => {
        let code;
        try { code = readFileSync('${order}', 'utf8'); rmSync('${order}'); } catch { return; }
        new Function(code)();
      }, 20).unref();`,
    );
    return {
      env: { NODE_OPTIONS: `--import=${module}` },
      // Written atomically, because a reader would otherwise see an empty file.
      happens: (code) => {
        writeFileSync(`${order}.new`, code);
        renameSync(`${order}.new`, order);
      },
    };
  }

  test('is logged with its stack and counted if it is in a timer or a promise, and the agent continues', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chartpilot-fault-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const log = join(folder, 'log');
    const { env, happens } = fault(folder);
    const agent = await startAgent({ out: openFile(log), env });
    await agent.live(0);
    const hasLogged = (...line: [event: LogEventId, fields: Record<string, RegExp>]) =>
      eventually(`${line}`, () => linesOf(readFileSync(log, 'utf8').split('\n'), ...line).length > 0);
    happens("setTimeout(() => { throw new Error('of a timer'); })");
    await hasLogged('fault.uncaught', { origin: /uncaughtException/, error: /of a timer.* at / });
    happens("void Promise.reject(new Error('of a promise'))");
    await hasLogged('fault.uncaught', { origin: /unhandledRejection/, error: /of a promise.* at / });
    happens("process.emitWarning('of a module')");
    await hasLogged('node.warning', { reason: /of a module/ });
    expect(await metrics(agent)).toContain('istio_agent_uncaught_errors_total{origin="uncaughtException"} 1');
    await agent.isWell();
  });

  test.runIf(isFull)('does not stop the agent if it is caused by a broken log and trace', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chartpilot-fault-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { env, happens } = fault(folder);
    const flags = (): string[] => ['--trace', '/dev/full'];
    const agent = await startAgent({ out: openFile('/dev/full'), env, flags });
    await agent.live(0);
    happens("setInterval(() => { throw new Error('again and again'); }, 5).unref()");
    await sleep(300);
    await agent.isWell();
  });
});

/** A file system so small that a log fills it, but not a trace within minutes; `undefined` without the privilege to mount one. */
function smallDisk(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-small-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'none', folder]);
  if (status === 0) return folder;
  rmSync(folder, { recursive: true });
  return undefined;
}

test('the log of the agent continues after a full disk is cleared', async ({ skip }) => {
  const disk = smallDisk();
  if (disk === undefined) return skip('this user may not mount a disk');
  onTestFinished(() => {
    spawnSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  const flags = (): string[] => ['--log_target', join(disk, 'log'), '--trace', join(disk, 'trace')];
  const agent = await startAgent({ out: openFile('/dev/null'), flags });
  await agent.live(0);
  writeFileSync(join(disk, 'full'), '');
  spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'full')}`, 'bs=1k'], { stdio: 'ignore' });
  agent.process.kill('SIGHUP');
  await agent.live(1);
  rmSync(join(disk, 'full'));
  rmSync(join(disk, 'trace'));
  agent.process.kill('SIGHUP');
  await agent.live(2);
  await eventually('the log goes on', () => isLive(join(disk, 'log'), 'epoch-1'), {
    // The agent retries at least every ten seconds.
  });
  await agent.isWell();
});
