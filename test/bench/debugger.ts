/** `npm run bench:debugger`: cost of tracing; see the usage. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { TraceLine } from '../../src/runtime/trace/trace.ts';
import type { AgentProgram, DiscoveryProgram, Mesh } from '../harness/mesh.ts';
import { AdsStreams } from './ads-streams.ts';
import { exitWith, integerFlag, print, runBench } from './bench-run.ts';
import { cpuTimeMs } from './cpu-time.ts';
import { type DebuggerRun, formatDebuggerRun, problemsOf } from './debugger-figures.ts';
import { recordCostUs } from './record-cost.ts';
import { medianOf } from './statistics.ts';

const usage = `Usage: npm run bench:debugger -- [--seconds S] [--connections N] [--services N]

Runs two agents side by side, one that writes a trace while a viewer reads its stream, one with neither, and compares their
CPU time: first idle except for readiness probes, then in a storm of hot restarts. Then measures pushes of one control plane to
many streams: the records of a push × the cost of one record, as a share of the push's CPU time. The last line has the figures.

  --seconds S        duration of each agent phase, default 30
  --connections N    default 500
  --services N       services in the mesh, default 300

Exit code 1 if a goal was missed or a process or file was left behind.
`;

const times = { watchDelayMs: 100, drainMs: 1_000, parentShutdownMs: 2_000, terminationDrainMs: 1_000 };
const untraced = ['--trace=', '--debugger', 'off', '--configPath', 'untraced'];
const traced = ['--debugger', 'open', '--configPath', 'traced'];
const pushes = 5;
/** Time after a push for messages that client and server have not processed yet. */
const settleMs = 500;

interface Settings {
  readonly phaseMs: number;
  readonly connections: number;
  readonly services: number;
}

function readSettings(): Settings | undefined {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string' },
      connections: { type: 'string' },
      services: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  return {
    phaseMs: integerFlag('seconds', values.seconds, 30) * 1_000,
    connections: integerFlag('connections', values.connections, 500),
    services: integerFlag('services', values.services, 300),
  };
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) {
    process.stdout.write(usage);
    return 0;
  }
  const run: { -readonly [Key in keyof DebuggerRun]?: DebuggerRun[Key] } = { connections: settings.connections };
  const { problems } = await runBench(times, async ({ mesh }) => {
    writeServices(mesh, settings.services);
    await mesh.startSamples();
    const discovery = await mesh.startDiscovery(['--debugger', 'open', '--traceLevel', 'standard']);
    Object.assign(run, await measureAgents(mesh, settings));
    Object.assign(run, await measurePush(mesh, discovery, settings));
  });
  const all = run.pushCpuMs === undefined ? problems : [...problems, ...problemsOf(run as DebuggerRun)];
  for (const problem of all) print(problem);
  if (run.pushCpuMs !== undefined) print(formatDebuggerRun(run as DebuggerRun));
  return all.length === 0 ? 0 : 1;
}

async function measureAgents(mesh: Mesh, { phaseMs }: Settings): Promise<Partial<DebuggerRun>> {
  const agents = [await mesh.startExtraAgent(traced), await mesh.startExtraAgent(untraced)] as const;
  await Promise.all(agents.map((agent) => mesh.waitForAgent(agent)));
  const viewer = readStream(agents[0].statusPort, { follow: true });
  await sleep(2_000);

  print(`${phaseMs / 1_000} s of nothing but readiness probes …`);
  const steady = await compare(agents, phaseMs, async (agent) => {
    await fetch(`http://127.0.0.1:${agent.statusPort}/healthz/ready`).then((healthResponse) => healthResponse.text());
    await sleep(1_000);
  });
  print(`${phaseMs / 1_000} s of hot restarts …`);
  const epochs = agents.map(() => new Set<number>());
  const storm = await compare(agents, phaseMs, async (agent) => {
    agent.program.signal('SIGHUP');
    await sleep(500);
    for (const { pid } of mesh.envoysOf(agent)) epochs[agents.indexOf(agent)]!.add(pid);
  });
  viewer.close();
  await Promise.all(agents.map(({ program }) => program.stop()));
  return { steadyShare: steady, stormShare: storm, stormRestarts: epochs.map(({ size }) => size - 1) };
}

/** @returns additional CPU time of the first agent compared with the second, as a share of one core */
async function compare(
  agents: readonly [AgentProgram, AgentProgram],
  phaseMs: number,
  keepBusy: (agent: AgentProgram) => Promise<void>,
): Promise<number> {
  const startedAt = performance.now();
  const cpuBeforePushes = agents.map(({ program }) => cpuTimeMs(program.pid));
  await Promise.all(
    agents.map(async (agent) => {
      while (performance.now() - startedAt < phaseMs) await keepBusy(agent);
    }),
  );
  const elapsedMs = performance.now() - startedAt;
  const [first = 0, second = 0] = agents.map(({ program }, i) => cpuTimeMs(program.pid) - cpuBeforePushes[i]!);
  print(`  CPU: ${first.toFixed(0)} ms with a trace and a viewer, ${second.toFixed(0)} ms without`);
  return (first - second) / elapsedMs;
}

async function measurePush(mesh: Mesh, discovery: DiscoveryProgram, settings: Settings): Promise<Partial<DebuggerRun>> {
  const { connections } = settings;
  print(`${connections} streams …`);
  const { pid } = discovery.program;
  const streams = await AdsStreams.open(mesh.xdsPort, connections);
  await sleep(2_000);
  const measurements: { cpuMs: number; lines: readonly TraceLine[] }[] = [];
  for (let push = 1; push <= pushes; push++) {
    const previousRecord = await lastRecord(discovery.httpPort);
    const cpuBefore = cpuTimeMs(pid);
    await streams.pushChange('EDS', () => writeService(mesh, 1, push));
    await sleep(settleMs);
    const cpuMs = cpuTimeMs(pid) - cpuBefore;
    const lines = (await readStream(discovery.httpPort, { follow: false }).lines).filter(
      (line) => line.kind !== 'header' && line.seq > previousRecord,
    );
    measurements.push({ cpuMs, lines });
    print(`  push ${push}: ${cpuMs.toFixed(0)} ms CPU, ${lines.length} records`);
  }
  streams.close();
  const median = medianOf(measurements.map(({ cpuMs }) => cpuMs));
  const { lines } = measurements.find(({ cpuMs }) => cpuMs === median)!;
  return {
    pushCpuMs: median,
    pushRecords: lines.length,
    recordCostUs: recordCostUs(lines),
  };
}

async function lastRecord(port: number): Promise<number> {
  const last = (await readStream(port, { follow: false }).lines).at(-1);
  return last === undefined || last.kind === 'header' ? 0 : last.seq;
}

/** Reads the trace that a program serves. */
function readStream(port: number, { follow }: { follow: boolean }): { lines: Promise<TraceLine[]>; close(): void } {
  const { promise, resolve, reject } = Promise.withResolvers<TraceLine[]>();
  // Closing the viewer is not a failure.
  promise.catch(() => {});
  const request = get({ host: '127.0.0.1', port, path: `/debug/trace${follow ? '' : '?follow=false'}` }, (response) => {
    const chunks: string[] = [];
    response.setEncoding('utf8').on('data', (chunk: string) => void (follow || chunks.push(chunk)));
    response.once('error', reject).once('end', () => {
      const text = chunks.join('');
      if (response.statusCode !== 200) reject(new Error(`the stream responds with ${response.statusCode}: ${text}`));
      else
        resolve(
          text
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line) as TraceLine),
        );
    });
  }).once('error', reject);
  return { lines: promise, close: () => request.destroy() };
}

function writeServices(mesh: Mesh, count: number): void {
  mkdirSync(join(mesh.directory.path, 'bench'), { recursive: true });
  for (let n = 1; n <= count; n++) writeService(mesh, n, 0);
}

/** Writes a service with ten endpoints; `mark` changes the address of one. */
function writeService(mesh: Mesh, n: number, mark: number): void {
  const endpoints = Array.from(
    { length: 10 },
    (_, i) => `    - address: 10.${n >> 8}.${n & 255}.${i === 0 ? 100 + mark : i}`,
  );
  const text = [
    'apiVersion: networking.istio.io/v1',
    'kind: ServiceEntry',
    `metadata: { name: bench-${n}, namespace: demo }`,
    'spec:',
    `  hosts: [bench-${n}.demo.test]`,
    '  location: MESH_INTERNAL',
    '  resolution: STATIC',
    '  ports: [{ number: 8080, name: http, protocol: HTTP }]',
    '  endpoints:',
    ...endpoints,
    '',
  ].join('\n');
  writeFileSync(join(mesh.directory.path, 'bench', `service-${n}.yaml`), text);
}

await exitWith(main);
