/**
 * `node test/bench/start-up.ts [--starts 15] [--beside FOLDER] [--idle SECONDS]`: milliseconds from exec of
 * `pilot-agent proxy` to each exec of Envoy, and resident memory of the agent some time later, compared with a bare
 * Node process. `--beside` alternates with another checkout. On a busy machine the minimum of the starts is the best
 * estimate.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';

const { values } = parseArgs({
  options: {
    starts: { type: 'string', default: '15' },
    beside: { type: 'string' },
    idle: { type: 'string', default: '0' },
  },
});

interface StartMeasurement {
  /** From exec of the program to exec of Envoy, with the purpose of Envoy's run. */
  readonly execs: readonly { readonly purpose: string; readonly ms: number }[];
  readonly cpuMs: number;
  readonly rssMb: number;
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  for (const server of servers) server.close();
  return ports;
}

/** An Envoy that records when it is executed. The script uses only shell builtins, because `date` would start another process. */
function recordingEnvoy(folder: string): string {
  const path = join(folder, 'envoy');
  const log = join(folder, 'execs');
  writeFileSync(
    path,
    `#!/bin/bash\nt=$EPOCHREALTIME\ncase "$*" in *--hot-restart-version*) w=flags;; *"--mode validate"*) w=validate;; *) w=serve;; esac\necho "\${t/[.,]/} $w $*" >>${log}\nexec ${envoyBinary()} "$@"\n`,
  );
  chmodSync(path, 0o755);
  return path;
}

async function start(root: string, idleMs: number): Promise<StartMeasurement> {
  const folder = mkdtempSync(join(tmpdir(), 'start-up-'));
  try {
    const [status, admin, statusListener, metrics, dns] = await freePorts(5);
    mkdirSync(join(folder, 'run'));
    const startedAtUs = (performance.timeOrigin + performance.now()) * 1_000;
    const child = spawn(
      join(root, 'bin/pilot-agent'),
      ['proxy', 'sidecar', '--statusPort', String(status), '--proxyAdminPort', String(admin), '--concurrency', '1']
        .concat([
          '--discoveryAddress',
          '127.0.0.1:9',
          '--controlPlaneAuthPolicy',
          'NONE',
          '--runDir',
          join(folder, 'run'),
        ])
        .concat(['--binaryPath', recordingEnvoy(folder), '--terminationDrainDuration', '100ms']),
      {
        cwd: folder,
        stdio: 'ignore',
        env: {
          PATH: process.env.PATH,
          ENVOY_STATUS_PORT: String(statusListener),
          ENVOY_PROMETHEUS_PORT: String(metrics),
          ISTIO_META_DNS_CAPTURE: 'true',
          DNS_PROXY_ADDR: `127.0.0.1:${dns}`,
        },
      },
    );
    const childExit = once(child, 'exit');
    const execs = (): StartMeasurement['execs'] =>
      (existsSync(join(folder, 'execs')) ? readFileSync(join(folder, 'execs'), 'utf8') : '')
        .split('\n')
        .flatMap((line) => {
          const [at, purpose] = line.split(' ');
          return purpose === undefined ? [] : [{ purpose, ms: (Number(at) - startedAtUs) / 1_000 }];
        });
    const limit = performance.now() + 20_000;
    while (!execs().some(({ purpose }) => purpose === 'serve')) {
      if (performance.now() > limit) throw new Error('no Envoy in 20 s');
      await sleep(10);
    }
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    await sleep(idleMs);
    const rss = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
    child.kill('SIGTERM');
    await childExit;
    return {
      execs: execs(),
      cpuMs: (Number(stat[11]) + Number(stat[12])) * 10,
      rssMb: Number(rss) / 1024,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const roots = [packageRoot(), ...(values.beside === undefined ? [] : [values.beside])];
const idleMs = Number(values.idle) * 1_000;
const starts = new Map<string, StartMeasurement[]>(roots.map((root) => [root, []]));
// The first start of each program fills file caches and is not measured.
for (let round = 0; round <= Number(values.starts); round++) {
  for (const root of roots) {
    const one = await start(root, idleMs);
    if (round > 0) starts.get(root)!.push(one);
  }
}

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!;
for (const [root, all] of starts) {
  console.log(root === packageRoot() ? 'this checkout' : root);
  const purposes = ['flags', 'validate', 'serve'] as const;
  for (const purpose of purposes) {
    const ms = all.flatMap(({ execs }) => execs.find((exec) => exec.purpose === purpose)?.ms ?? []);
    if (ms.length === 0) continue;
    console.log(
      `  exec to exec of Envoy (${purpose}): median ${median(ms).toFixed(0)} ms, least ${Math.min(...ms).toFixed(0)} ms`,
    );
  }
  console.log(`  processor time until then: median ${median(all.map(({ cpuMs }) => cpuMs))} ms`);
  console.log(`  resident after ${values.idle} s: median ${median(all.map(({ rssMb }) => rssMb)).toFixed(1)} MB`);
}
const node = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e9)'], { stdio: 'ignore' });
await sleep(1_000);
const rssKib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${node.pid}/status`, 'utf8'))?.[1];
node.kill();
console.log(`a bare Node: ${(Number(rssKib) / 1024).toFixed(1)} MB`);
