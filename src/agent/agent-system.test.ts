/** Tests the complete agent with the real Envoy, with a test bootstrap and no control plane. */

import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { decode, encode } from 'dns-packet';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../test/certs/authority.ts';
import { replaceFiles } from '../../test/certs/certificate-directory.ts';
import { envoyBinary, freePort, temporaryFolder, writeAdminOnlyBootstrap } from '../../test/fixtures/real-envoy.ts';
import { defaultDeadlineMs } from '../../test/harness/eventually.ts';
import { linesOf } from '../../test/harness/logged-line.ts';
import { programFile } from '../../test/harness/program-files.ts';
import type { TraceLine } from '../runtime/trace/trace.ts';
import { createAdminClient } from './admin/admin-client.ts';
import { claimBaseId } from './envoy/base-ids/base-ids.ts';

interface Agent {
  readonly process: ChildProcess;
  readonly folder: string;
  readonly statusPort: number;
  readonly certificates: string;
  output(): string;
  /** Complete lines of output. */
  lines(): string[];
  exit(): Promise<{ code: number | null; signal: string | null }>;
  /** Whether the status port reports readiness. */
  ready(): Promise<boolean>;
  /** Waits for a live epoch with this number. */
  live(epoch: number): Promise<void>;
  envoys(): number[];
  trace(): TraceLine[];
}

async function startAgent(
  options: { statusPort?: number; folder?: string; role?: string; flags?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<Agent> {
  const parent = options.folder === undefined ? temporaryFolder() : undefined;
  const folder = options.folder ?? parent!.path;
  const adminPort = await freePort();
  const statusPort = options.statusPort ?? (await freePort());
  const certificates = join(folder, 'certs');
  mkdirSync(certificates, { recursive: true });
  const traceFile = join(folder, 'agent.trace');
  const args = [
    ...[programFile('pilot-agent'), 'proxy', options.role ?? 'router'],
    ...['--customConfigFile', writeAdminOnlyBootstrap(folder, adminPort)],
    ...['--binaryPath', envoyBinary(), '--proxyAdminPort', String(adminPort), '--statusPort', String(statusPort)],
    ...['--drainDuration', '1s', '--parentShutdownDuration', '2s', '--terminationDrainDuration', '200ms'],
    ...['--watchCerts', certificates, '--watchDelay', '100ms', '--concurrency', '1'],
    ...['--runDir', join(folder, 'run'), '--trace', traceFile],
    ...(options.flags ?? []),
  ];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const childClosed = once(child, 'close') as Promise<[number | null, string | null]>;
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await childClosed;
    await waitUntil('the Envoys are gone', () => envoysOf(folder).length === 0);
    // Removes what a killed agent leaves, because no other agent follows.
    if (existsSync(join(folder, 'run'))) (await claimBaseId({ runDir: join(folder, 'run') })).release();
    parent?.[Symbol.dispose]();
  });
  const admin = createAdminClient('127.0.0.1', adminPort);
  return {
    process: child,
    folder,
    statusPort,
    certificates,
    output: () => output,
    lines: () => output.split('\n').slice(0, -1),
    exit: async () => {
      const [code, signal] = await childClosed;
      return { code, signal };
    },
    ready: async () => (await createAdminClient('127.0.0.1', statusPort).get('/healthz/ready')).status === 200,
    live: (epoch) =>
      waitUntil(
        `epoch ${epoch} is live`,
        async () => isDeepStrictEqual(await admin.serverInfo(), { epoch, state: 'LIVE' }),
        () => output,
      ),
    envoys: () => envoysOf(folder),
    trace: () =>
      readFileSync(traceFile, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as TraceLine),
  };
}

/** Running Envoys with the bootstrap of a folder. */
function envoysOf(folder: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const [program = '', ...args] = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      return basename(program) === 'envoy' && args.includes(`${folder}/admin-only.json`) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

async function waitUntil(
  condition: string,
  holds: () => boolean | Promise<boolean>,
  context: () => string = () => '',
): Promise<void> {
  const deadline = performance.now() + defaultDeadlineMs;
  for (;;) {
    const statusResponse = await Promise.resolve()
      .then(holds)
      .catch(() => false);
    if (statusResponse) return;
    if (performance.now() > deadline) throw new Error(`not in ${defaultDeadlineMs} ms: ${condition}\n${context()}`);
    await sleep(20);
  }
}

/** Names in /dev/shm of the agent's base ID. */
function sharedMemory(agent: Agent): string[] {
  const claim = agent.trace().find((line) => line.kind === 'stop' && line.actor === 'agent/claim') as
    | { output: { baseIds: number[] } }
    | undefined;
  return readdirSync('/dev/shm').filter(
    (name) => name === `envoy_shared_memory_${(claim?.output.baseIds[0] ?? -1) * 10}`,
  );
}

test('serves, hot restarts on SIGHUP and on a new certificate, recovers from a crash, and stops on SIGTERM', async () => {
  const agent = await startAgent();
  await agent.live(0);
  await waitUntil('the agent is ready', () => agent.ready());

  agent.process.kill('SIGHUP');
  await agent.live(1);
  expect(await agent.ready()).toBe(true);

  writeFileSync(join(agent.certificates, 'ca.crt'), createAuthority().certificate);
  await agent.live(2);
  await waitUntil(
    'the parents are gone',
    () => agent.envoys().length === 1,
    () => `${agent.envoys()} ${agent.output()}`,
  );

  process.kill(agent.envoys()[0]!, 'SIGKILL');
  await agent.live(0);
  await waitUntil('the agent is ready', () => agent.ready());

  agent.process.kill('SIGTERM');
  expect(await agent.exit()).toEqual({ code: 0, signal: null });
  expect(agent.envoys()).toEqual([]);
  expect(sharedMemory(agent)).toEqual([]);
  expect(readdirSync(join(agent.folder, 'run'))).toEqual([]);
  // If readiness probes were logged, one probe per second would add two lines per second.
  expect(agent.output()).not.toContain('readiness.');
  expect(linesOf([agent.lines().at(-1)!], 'agent.exited', { result: /exited [\d.]+ m?s after SIGTERM/ })).toHaveLength(
    1,
  );
  const servedFields = { actor: 'epoch-2', to: 'serving', on: 'probe.passed' };
  expect(linesOf(agent.lines(), 'state.changed', servedFields)).toHaveLength(1);
  // Depends on whether the kernel counts out-of-memory kills.
  expect(agent.output()).toMatch(/signal SIGKILL: killed by (another process|the kernel)/);
  const restartFields = { 'restart.reason': 'configuration changed', 'restart.how': 'hot restart' };
  expect(linesOf(agent.lines(), 'restart.ended.live', { epoch: 'epoch-2', ...restartFields })).toHaveLength(1);
});

test('leaves no Envoy running when the agent is killed, and the next agent removes the shared memory', async () => {
  const first = await startAgent();
  await first.live(0);
  first.process.kill('SIGKILL');
  await first.exit();
  await waitUntil('the Envoy is gone', () => first.envoys().length === 0);
  expect(sharedMemory(first)).toHaveLength(1);
  const [sharedFile] = sharedMemory(first);
  const secondAgent = await startAgent({ folder: first.folder });
  await secondAgent.live(0);
  expect(existsSync(`/dev/shm/${sharedFile}`)).toBe(false);
  secondAgent.process.kill('SIGTERM');
  expect(await secondAgent.exit()).toEqual({ code: 0, signal: null });
});

test('leaves no Envoy running that had just started when the agent is killed', async () => {
  const agent = await startAgent();
  await waitUntil('there is a process', () => linesOf(agent.lines(), 'process.spawned').length > 0);
  agent.process.kill('SIGKILL');
  await agent.exit();
  await waitUntil('the Envoy is gone', () => agent.envoys().length === 0);
  const sweeper = await startAgent({ folder: agent.folder });
  await sweeper.live(0);
  sweeper.process.kill('SIGTERM');
  await sweeper.exit();
});

test('stops immediately on the second signal, regardless of the drain time', async () => {
  const agent = await startAgent({ flags: ['--terminationDrainDuration', '60s'] });
  await waitUntil('the agent is ready', () => agent.ready());
  agent.process.kill('SIGINT');
  await waitUntil(
    'it drains',
    () => linesOf(agent.lines(), 'state.changed', { actor: 'epoch-0', to: 'draining' }).length > 0,
  );
  agent.process.kill('SIGINT');
  expect(await agent.exit()).toEqual({ code: 0, signal: null });
  expect(sharedMemory(agent)).toEqual([]);
});

test('recreates missing temporary directories, and reports each failed attempt', async () => {
  const parent = temporaryFolder();
  onTestFinished(() => parent[Symbol.dispose]());
  const temporary = join(parent.path, 'tmp');
  mkdirSync(temporary);
  const agent = await startAgent({ env: { TMPDIR: temporary } });
  const runDir = join(agent.folder, 'run');
  await agent.live(0);
  // Repeated, because a supervisor without one of its charts would not recover a second time.
  for (const _ of ['first', 'second']) {
    rmSync(temporary, { recursive: true, force: true });
    rmSync(runDir, { recursive: true, force: true });
    const [firstPid] = agent.envoys();
    process.kill(firstPid!, 'SIGKILL');
    await waitUntil(
      'another Envoy is live',
      async () => !agent.envoys().includes(firstPid!) && (await agent.ready()),
      agent.output,
    );
  }
  // Creates files at these paths, so that not even root can create directories there.
  for (const folder of [temporary, runDir, join(agent.folder, 'etc')]) {
    rmSync(folder, { recursive: true, force: true });
    writeFileSync(folder, '');
  }
  process.kill(agent.envoys()[0]!, 'SIGKILL');
  const errorText = `cannot write to folder: ${runDir}: ENOTDIR`;
  await waitUntil(
    'the failed attempt is reported with its folder',
    () => agent.output().includes(errorText),
    agent.output,
  );
  expect(agent.output()).toContain('Set --runDir to a writable directory');
  rmSync(runDir);
  await waitUntil('an Envoy is live', () => agent.ready(), agent.output);
  agent.process.kill('SIGTERM');
  expect((await agent.exit()).code).toBe(0);
});

test('reports a certificate that Envoy rejects without restarting, and restarts when a valid one follows', async () => {
  const agent = await startAgent();
  await agent.live(0);
  const authority = createAuthority();
  const weak = authority.issue(['a'], generateKeyPairSync('rsa', { modulusLength: 1024 }));
  const goodPair = authority.issue(['a']);
  const put = (certificate: string, key: string): void =>
    replaceFiles(agent.certificates, { 'tls.crt': certificate, 'tls.key': key });
  const untilLogged = (condition: string): Promise<void> =>
    waitUntil(`told: ${condition}`, () => agent.output().includes(condition), agent.output);

  put(goodPair.privateKey, goodPair.privateKey);
  await untilLogged('tls.crt must contain a certificate, got a private key');
  put(weak.certificate, weak.privateKey);
  await untilLogged(`Envoy rejects ${agent.certificates}/tls.crt: `);
  await untilLogged('(block 1: RSA 1024 bits)');
  expect(agent.envoys()).toHaveLength(1);
  put(goodPair.certificate, goodPair.privateKey);
  await agent.live(1);
  agent.process.kill('SIGTERM');
  expect((await agent.exit()).code).toBe(0);
});

test('exits with a single error if the status port is in use', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, () => resolve()));
  onTestFinished(() => void other.close());
  const { port } = other.address() as { port: number };
  const agent = await startAgent({ statusPort: port });
  expect(await agent.exit()).toEqual({ code: 1, signal: null });
  const result = new RegExp(`exited with an error: status port ${port} is in use`);
  expect(linesOf(agent.lines(), 'agent.failed', { result })).toHaveLength(1);
  expect(agent.output()).toMatch(new RegExp(`^pilot-agent: status port ${port} is in use: stop the process`, 'm'));
  expect(readdirSync(join(agent.folder, 'run'))).toEqual([]);
});

test('exits without starting a process if the command line is invalid', async () => {
  const agent = await startAgent({ flags: ['--watchDelay', 'soon', '--baseId', 'x'] });
  expect(await agent.exit()).toEqual({ code: 255, signal: null });
  expect(agent.output()).toMatch(/^pilot-agent: .*--watchDelay: .*"soon".*--baseId: .*"x".* \[FLAG_INVALID\]$/m);
  expect(existsSync(join(agent.folder, 'agent.trace'))).toBe(false);
});

test('warns about unknown flags, and is not ready with --applicationPorts that Envoy does not serve', async () => {
  const agent = await startAgent({ flags: ['--fromTheFuture', 'x', '--applicationPorts', '8080'] });
  await agent.live(0);
  expect(linesOf(agent.lines(), 'option.unknown', { flags: /--fromTheFuture/ })).toHaveLength(1);
  const unservedText = 'no inbound listener for any application port (8080)';
  await waitUntil(
    'it says why',
    async () => !(await agent.ready()) && agent.output().includes(unservedText),
    agent.output,
  );
  agent.process.kill('SIGTERM');
  expect((await agent.exit()).code).toBe(0);
});

test('starts no Envoy with DISABLE_ENVOY, and serves until it is stopped (agent §1.3)', async () => {
  const agent = await startAgent({ env: { DISABLE_ENVOY: 'true' }, flags: ['--binaryPath', '/none/envoy'] });
  await waitUntil('ready', agent.ready, agent.output);
  expect(agent.envoys()).toEqual([]);
  // Envoy is disabled, so there is nothing to restart.
  agent.process.kill('SIGHUP');
  expect(await agent.ready()).toBe(true);
  agent.process.kill('SIGTERM');
  expect(await agent.exit()).toEqual({ code: 0, signal: null });
  expect(agent.output()).not.toContain('error');
});

/** An Envoy that records its invocations. */
function recordingEnvoy(): { path: string; invocations: () => string[] } {
  const parent = temporaryFolder();
  onTestFinished(() => parent[Symbol.dispose]());
  const path = join(parent.path, 'envoy');
  const log = join(parent.path, 'asked');
  writeFileSync(path, `#!/bin/sh\necho "$@" | tr '\\n' ' ' >>${log}; echo >>${log}\nexec ${envoyBinary()} "$@"\n`, {
    mode: 0o755,
  });
  const kindOf = (line: string): string => {
    if (line.includes('--hot-restart-version')) return 'flags';
    if (line.trim() === '--version') return 'version';
    return line.includes('--mode validate') ? 'judgement' : 'service';
  };
  return {
    path,
    invocations: () =>
      existsSync(log)
        ? readFileSync(log, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map(kindOf)
            .filter((kind) => kind !== 'version')
        : [],
  };
}

test('validates flags and bootstrap with a single Envoy before the first start', async () => {
  const envoy = recordingEnvoy();
  const agent = await startAgent({ flags: ['--binaryPath', envoy.path] });
  await agent.live(0);
  expect(envoy.invocations().slice(0, 2)).toEqual(['judgement', 'service']);
  // A later start validates again.
  agent.process.kill('SIGHUP');
  await agent.live(1);
  // On a busy host a child may be started more than once.
  expect(envoy.invocations().slice(0, 3)).toEqual(['judgement', 'service', 'judgement']);
  agent.process.kill('SIGTERM');
  expect((await agent.exit()).code).toBe(0);
});

test('exits with code 255 and starts no Envoy if Envoy rejects its flags', async () => {
  const envoy = recordingEnvoy();
  const agent = await startAgent({ flags: ['--binaryPath', envoy.path, '--proxyComponentLogLevel', 'nonsense:info'] });
  expect((await agent.exit()).code).toBe(255);
  expect(agent.output()).toMatch(/Envoy rejects its command line: .*nonsense.* \[FLAG_INVALID\]/);
  expect(envoy.invocations()).not.toContain('service');
});

test('exits with code 255 and one message and starts no Envoy if Envoy rejects the bootstrap override', async () => {
  const envoy = recordingEnvoy();
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const file = join(folder.path, 'override.yaml');
  writeFileSync(file, 'admin:\n  profile_pathh: /tmp/x\n');
  const env = { ISTIO_BOOTSTRAP_OVERRIDE: file };
  const agent = await startAgent({ flags: ['--binaryPath', envoy.path], env });
  expect((await agent.exit()).code).toBe(255);
  expect(agent.output()).toContain(`ISTIO_BOOTSTRAP_OVERRIDE ${file}:2:3: admin.profile_pathh: `);
  expect(agent.output().match(/profile_pathh/g)).toHaveLength(1);
  expect(envoy.invocations()).not.toContain('service');
});

test('resolves and counts the DNS queries of a sidecar with ISTIO_META_DNS_CAPTURE, and exits if the DNS port is in use', async () => {
  const dnsPort = await freePort();
  const env = { ISTIO_META_DNS_CAPTURE: 'true', DNS_PROXY_ADDR: `127.0.0.1:${dnsPort}`, DNS_FORWARD_TIMEOUT: '100ms' };
  const agent = await startAgent({ role: 'sidecar', env });
  await agent.live(0);
  const question = encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'nobody.invalid' }] });
  const client = createSocket('udp4');
  client.send(question, dnsPort, '127.0.0.1');
  const [response] = (await once(client, 'message')) as [Buffer];
  client.close();
  expect(decode(response)).toMatchObject({ id: 7, type: 'response', questions: [{ name: 'nobody.invalid' }] });
  const { body } = await createAdminClient('127.0.0.1', agent.statusPort).get('/metrics');
  expect(body).toMatch(/^istio_agent_dns_requests_total 1$/m);
  expect(body).toMatch(/^istio_agent_dns_upstream_request_duration_seconds_bucket\{le="\+Inf"\} [01]$/m);
  const secondAgent = await startAgent({ role: 'sidecar', env });
  expect(await secondAgent.exit()).toMatchObject({ code: 1 });
  expect(secondAgent.output()).toMatch(new RegExp(`DNS server on 127\\.0\\.0\\.1: .*EADDRINUSE.*${dnsPort}`));
});
