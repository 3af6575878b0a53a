/** Go programs that the tests need: each is built once for its sources, and reused. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChartpilotError, isSystemError } from '../../src/runtime/errors.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { isAlive } from '../harness/process-alive.ts';
import { endWithRunner } from '../harness/runner-watch.ts';

/** Kubernetes's own build sets these; without them the server reports v0.0.0, which its clients cannot parse. */
const versionFlags = ['gitVersion=v1.36.3', 'gitMajor=1', 'gitMinor=36'].map(
  (flag) => `-X k8s.io/component-base/version.${flag}`,
);
const flags = ['-trimpath', '-buildvcs=false', '-mod=readonly', '-ldflags'];

export interface GoProgram {
  /** Name of the binary. */
  readonly name: string;
  /** Folder of the program's module (default: `test/cluster/NAME`). */
  readonly folder?: string;
  /** Default `go build`; `go test -c` for a test binary. */
  readonly command?: readonly string[];
  /** Name in messages. */
  readonly title: string;
  /** Build time on two idle cores. */
  readonly takes: string;
  readonly package: string;
  readonly flags: readonly string[];
  /** Environment of the build, for example another target system. */
  readonly environment?: Readonly<Record<string, string>>;
}

export const apiServer: GoProgram = {
  ...{ name: 'api-server', title: 'the API server of the tests', takes: 'five minutes', package: '.' },
  flags: [...flags, ['-s', '-w', ...versionFlags].join(' ')],
};

/** Helm, which installs charts. Only its module names and checksums are in this repository. */
export const helm: GoProgram = {
  ...{ name: 'helm', title: 'Helm', takes: 'a minute and a half', package: 'helm.sh/helm/v4/cmd/helm' },
  flags: [...flags, '-s -w'],
};

/** Consul. A local module replaces cloud auto-join, which needs the clients of twelve providers. */
export const consul: GoProgram = {
  ...{ name: 'consul', title: 'Consul', takes: 'five minutes', package: 'github.com/hashicorp/consul' },
  flags: [...flags, '-s -w'],
};

/** Istio's client, for the nightly tests of `docs/istioctl.md`. Only its module names and checksums are in this repository. */
export const istioctl: GoProgram = {
  ...{ name: 'istioctl', title: 'istioctl', takes: 'eight minutes', package: 'istio.io/istio/istioctl/cmd/istioctl' },
  flags: [...flags, '-s -w'],
};

/** Executes templates with Go's text/template: the agent's, and the injector's with sprig. */
export const goTemplate: GoProgram = {
  ...{ name: 'go-template', title: "Go's text/template", takes: 'half a minute', package: '.' },
  flags: [...flags, '-s -w'],
};

/** The optional package that executes Go templates of the injector, as WebAssembly. */
export const goTemplates: GoProgram = {
  ...{ name: 'go-templates.wasm', folder: 'packages/go-templates/go', title: 'the WebAssembly of Go templates' },
  ...{ takes: 'a minute and a half', package: '.' },
  flags: [...flags, '-s -w', '-buildmode=c-shared'],
  environment: { GOOS: 'wasip1', GOARCH: 'wasm' },
};

/** A client and a server of grpc-go, configured over xDS (`test/grpc/`). */
export const goPeer: GoProgram = {
  ...{ name: 'go-peer', folder: 'test/grpc/go-peer', title: 'the gRPC peer in Go', takes: 'a minute', package: '.' },
  flags: [...flags, '-s -w'],
};

/** Kubelet, controller manager, scheduler and kube-proxy (`test/node/`). */
export const nodeProgram: GoProgram = {
  ...{ name: 'node-program', folder: 'test/node/node-program', title: 'the node of the tests' },
  ...{ takes: 'three minutes', package: '.' },
  flags: [...flags, ['-s', '-w', ...versionFlags].join(' ')],
};

/** CoreDNS with the plugins of a cluster's name server (`test/node/`). */
export const clusterDns: GoProgram = {
  ...{ name: 'cluster-dns', folder: 'test/node/cluster-dns', title: 'the name server of the tests' },
  ...{ takes: 'a minute and a half', package: '.' },
  flags: [...flags, '-s -w'],
};

/** Evaluates PromQL over scraped pages with Prometheus's own parser and engine (`test/dashboards/`). */
export const promql: GoProgram = {
  ...{ name: 'promql', folder: 'test/dashboards/promql', title: "Prometheus' query engine", takes: 'fifteen seconds' },
  ...{ package: '.', flags: [...flags, '-s -w'] },
};

/** Applies strategic merge patches with Kubernetes's own code (`test/injection/`). */
export const mergeOracle: GoProgram = {
  ...{
    name: 'merge-oracle',
    folder: 'test/injection/merge-oracle',
    title: "Kubernetes' merge",
    takes: 'a minute',
    package: '.',
  },
  flags: [...flags, '-s -w'],
};

/** A build takes ten minutes of processor time, on a machine with six busy processes. */
const buildLimitMs = 45 * 60_000;
const reportIntervalMs = 30_000;

/**
 * @param report receives each line of progress
 * @returns the binary's path
 * @throws ChartpilotError REQUEST_FAILED if the build fails, with the output of Go
 */
export async function findOrBuild(program: GoProgram, report: (line: string) => void): Promise<string> {
  const folder = cacheFolder(program);
  const binary = join(folder, program.name);
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  await withLock(program, join(folder, 'lock'), report, async () => {
    if (existsSync(binary)) return;
    const draft = join(folder, `${program.name}.new-${process.pid}`);
    try {
      await build(program, draft, report);
      renameSync(draft, binary);
    } finally {
      rmSync(draft, { force: true });
    }
  });
  return binary;
}

function sourcesOf({ name, folder = join('test/cluster', name) }: GoProgram): string {
  return join(packageRoot(), folder);
}

function cacheFolder(program: GoProgram): string {
  const sources = sourcesOf(program);
  const digest = createHash('sha256');
  const files = readdirSync(sources, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile());
  const names = files.map((file) => relative(sources, join(file.parentPath, file.name))).sort();
  for (const name of names) digest.update(`${name}\0`).update(readFileSync(join(sources, name)));
  const { flags, package: built, command, environment } = program;
  const options = command ? [flags, built, command] : flags;
  digest.update(JSON.stringify(environment ? [options, environment] : options)).update(goVersion(program));
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(cache, 'chartpilot', 'cluster', digest.digest('hex').slice(0, 32));
}

function goVersion(program: GoProgram): string {
  const { status, stdout, error } = spawnSync('go', ['env', 'GOVERSION', 'GOOS', 'GOARCH'], goOptions(program));
  if (status === 0) return stdout;
  throw new ChartpilotError('REQUEST_FAILED', `${program.title} needs Go: ${error?.message ?? 'go env failed'}`, {
    hint: 'Install Go 1.26 or later, and have it in PATH.',
  });
}

function goOptions(program: GoProgram) {
  // Uses only the installed version, without downloads.
  const env = { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', ...program.environment };
  return { cwd: sourcesOf(program), env, encoding: 'utf8' } as const;
}

async function build(program: GoProgram, draft: string, report: (line: string) => void): Promise<void> {
  const { title, takes } = program;
  const capitalizedTitle = title.charAt(0).toUpperCase() + title.slice(1);
  report(`${capitalizedTitle} is built (once; ${takes} of two cores that do nothing else)`);
  const startedAt = performance.now();
  const { cwd, env } = goOptions(program);
  const command = program.command ?? ['build'];
  const go = spawn('nice', ['-n', '10', 'go', ...command, ...program.flags, '-o', draft, program.package], {
    ...{ cwd, env, detached: true },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithRunner(go);
  const lastOutput = lastWords(go);
  const minutes = (): string => ((performance.now() - startedAt) / 60_000).toFixed(1);
  const reporting = setInterval(
    () => report(`  … ${minutes()} minutes, of ${buildLimitMs / 60_000} at the most`),
    reportIntervalMs,
  );
  const limit = setTimeout(() => endGroup(go), buildLimitMs);
  const [code, signal] = (await once(go, 'close').finally(() => {
    clearInterval(reporting);
    clearTimeout(limit);
  })) as [number | null, string | null];
  if (code !== 0) {
    const endReason = signal === null ? `go build ended with ${code}` : `go build was ended after ${minutes()} minutes`;
    throw new ChartpilotError('REQUEST_FAILED', `${title} cannot be built: ${endReason}\n${lastOutput()}`, {
      hint: 'It needs Go 1.26, its module proxy (GOPROXY) and 3 GB of disk.',
    });
  }
  report(`${capitalizedTitle} was built in ${minutes()} minutes`);
}

function endGroup(child: ChildProcess): void {
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
}

/** The last output of the child, on both streams. */
function lastWords(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-4_000);
    });
  }
  return () => text.trim();
}

/** Only one process of this machine holds the lock. The file of an exited process is no lock. */
async function withLock(
  { title }: GoProgram,
  file: string,
  report: (line: string) => void,
  work: () => Promise<void>,
): Promise<void> {
  const deadline = performance.now() + buildLimitMs;
  let lastReportAt = Number.NEGATIVE_INFINITY;
  while (!takeLock(file)) {
    const holderPid = holderOf(file);
    if (holderPid !== undefined && !isAlive(holderPid)) {
      rmSync(file, { force: true });
      continue;
    }
    if (performance.now() > deadline) {
      throw new ChartpilotError('REQUEST_FAILED', `process ${holderPid} builds ${title} and does not end`, {
        hint: `See ${file}.`,
      });
    }
    if (performance.now() - lastReportAt > reportIntervalMs) {
      report(`Process ${holderPid} builds ${title}: waiting for it`);
      lastReportAt = performance.now();
    }
    await sleep(500);
  }
  try {
    await work();
  } finally {
    rmSync(file, { force: true });
  }
}

function takeLock(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return false;
    throw error;
  }
}

/** `undefined` while the file is being written or after it was removed. */
function holderOf(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8')) || undefined;
  } catch {
    return undefined;
  }
}
