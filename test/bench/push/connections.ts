/**
 * Cost of a connection: one replica with a growing number of sidecars, each with its own address, and a restart after which all sidecars reconnect
 * simultaneously.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../harness/free-ports.ts';
import { Inspector } from '../../harness/inspector.ts';
import { print } from '../bench-run.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import type { Programs } from '../programs.ts';
import { medianOf, quantileOf } from '../statistics.ts';
import { type CollectedMemory, collectedMemory } from './collected-memory.ts';
import { Crowd } from './crowd.ts';
import type { MeshChange } from './mesh-files.ts';
import { type Figure, figure } from './push-figures.ts';
import { nextMark, settleMs } from './push-run.ts';
import { type PushServer, waitForPort } from './servers.ts';
import type { AllMeasuredServers } from './subjects.ts';

/** Share of all sidecars connected at each step. */
const shares = [0.1, 0.2, 0.5, 1] as const;
const changesAStep = 3;

export interface ConnectionsPlan {
  readonly services: number;
  /** Number of sidecars at the last step. */
  readonly sidecars: number;
}

/** Figures of the server at one number of connections. */
export interface ConnectionsStep {
  readonly connections: number;
  /** Connections added by this step. */
  readonly opened: { readonly connections: number; readonly ms: number; readonly cpuMs: number };
  readonly memory: CollectedMemory;
  readonly endpoint: readonly ChangeCost[];
  readonly route: readonly ChangeCost[];
}

interface ChangeCost {
  readonly ackMs: number;
  readonly cpuMs: number;
}

/** Simultaneous reconnect of all sidecars. Times start when the new server listens. */
export interface Reconnect {
  /** Name of the admission limit. */
  readonly limit: string;
  readonly connections: number;
  readonly halfMs: number;
  readonly allMs: number;
  readonly cpuMs: number;
  /** Number of opened streams. */
  readonly attempts: number;
  readonly messageBytes: number;
}

/** Limits on new streams per second of the server in a reconnect. */
const reconnectLimits: Readonly<Record<string, NodeJS.ProcessEnv>> = {
  'without a limit': { PILOT_MAX_REQUESTS_PER_SECOND: '100000' },
  'the default limit': {},
};

/** Measures all steps on one server, kills it, and lets all sidecars reconnect to the next one. */
export async function measureConnections(
  programs: Programs,
  subjects: AllMeasuredServers,
  { services, sidecars }: ConnectionsPlan,
): Promise<Figure[]> {
  const { startPilot } = await subjects.serversFor(services);
  const [inspectorPort, ...ports] = await freePorts(4);
  const start = (env: NodeJS.ProcessEnv): Promise<PushServer> =>
    startPilot({ debounce: '1ms', ports, env: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}`, ...env } });
  let server = await start({});
  await waitForPort(server);
  const crowd = new Crowd(programs, server.port);
  const inspector = await Inspector.attach(inspectorPort!);
  const steps: ConnectionsStep[] = [];
  // With few sidecars, several shares are the same number, and a repeated step would wait forever.
  for (const connections of new Set(shares.map((share) => Math.ceil(sidecars * share)))) {
    const step = await grow(server, crowd, inspector, connections);
    printStep(step);
    steps.push(step);
  }
  inspector.close();
  const herds: Reconnect[] = [];
  for (const [limit, env] of Object.entries(reconnectLimits)) {
    const bytesBefore = await crowd.messageBytes();
    let listensAtMs = 0;
    const { fullAtMs, attempts, reasons } = await crowd.returnAfter(async () => {
      process.kill(server.pid, 'SIGKILL');
      await server.stop();
      server = await start(env);
      await waitForPort(server);
      listensAtMs = Number(process.hrtime.bigint()) / 1e6;
    });
    const messageBytes = (await crowd.messageBytes()) - bytesBefore;
    const cpuMs = cpuTimeMs(server.pid);
    const halfMs = quantileOf(fullAtMs, 0.5) - listensAtMs;
    const allMs = fullAtMs.at(-1)! - listensAtMs;
    herds.push({ limit, connections: crowd.size, halfMs, allMs, cpuMs, attempts, messageBytes });
    print(`  ${JSON.stringify({ ...herds.at(-1), reasons })}`);
  }
  await crowd.end();
  await server.stop();
  return connectionFigures(steps, herds);
}

async function grow(
  server: PushServer,
  crowd: Crowd,
  inspector: Inspector,
  connections: number,
): Promise<ConnectionsStep> {
  const opening = connections - crowd.size;
  const cpuBefore = cpuTimeMs(server.pid);
  const ms = await crowd.grow(opening);
  await sleep(settleMs);
  const opened = { connections: opening, ms, cpuMs: cpuTimeMs(server.pid) - cpuBefore };
  const endpoint = await changeOften(server, crowd, 'endpoint');
  const route = await changeOften(server, crowd, 'route');
  return { connections, opened, endpoint, route, memory: await collectedMemory(server.pid, inspector) };
}

/** The first change warms up the code and is not measured. */
async function changeOften(server: PushServer, crowd: Crowd, change: MeshChange): Promise<ChangeCost[]> {
  const costs: ChangeCost[] = [];
  for (let i = 0; i <= changesAStep; i++) {
    const cpuBefore = cpuTimeMs(server.pid);
    const ackMs = await crowd.acknowledge(server, change, nextMark());
    await sleep(settleMs);
    if (i > 0) costs.push({ ackMs, cpuMs: cpuTimeMs(server.pid) - cpuBefore });
  }
  return costs;
}

/** KiB per additional connection, from the first step to the last. */
function memoryPerConnection(steps: readonly Pick<ConnectionsStep, 'connections' | 'memory'>[]): {
  readonly heapKib: number;
  readonly buffersKib: number;
  readonly rssKib: number;
} {
  const [first, last] = [steps[0]!, steps.at(-1)!];
  const kibPerConnection = (of: (memory: CollectedMemory) => number): number =>
    ((of(last.memory) - of(first.memory)) * 1024) / (last.connections - first.connections);
  return {
    heapKib: kibPerConnection(({ heapMib }) => heapMib),
    buffersKib: kibPerConnection(({ buffersMib }) => buffersMib),
    rssKib: kibPerConnection(({ rssMib }) => rssMib),
  };
}

function connectionFigures(steps: readonly ConnectionsStep[], herds: readonly Reconnect[]): Figure[] {
  const { heapKib, buffersKib, rssKib } = memoryPerConnection(steps);
  const memoryParts = { heap: heapKib, 'buffers outside of it': buffersKib, resident: rssKib };
  return [
    ...Object.entries(memoryParts).map(([name, kib]) =>
      figure({ name: `a connection: ${name}`, unit: 'KiB', ours: [kib] }),
    ),
    ...steps.flatMap(({ connections, opened, endpoint, route, memory }) => [
      figure({ name: `${connections}: CPU to open one`, unit: 'ms', ours: [opened.cpuMs / opened.connections] }),
      figure({ name: `${connections}: resident`, unit: 'MiB', ours: [memory.rssMib] }),
      ...Object.entries({ endpoint, route }).flatMap(([change, costs]) => [
        figure({ name: `${connections}: ${change} → last ACK`, unit: 'ms', ours: costs.map(({ ackMs }) => ackMs) }),
        figure({ name: `${connections}: ${change} CPU`, unit: 's', ours: costs.map(({ cpuMs }) => cpuMs / 1_000) }),
      ]),
    ]),
    ...herds.flatMap(({ limit, connections, halfMs, allMs, cpuMs, messageBytes }) => [
      figure({ name: `${connections} back, ${limit}: half`, unit: 's', ours: [halfMs / 1_000] }),
      figure({ name: `${connections} back, ${limit}: all`, unit: 's', ours: [allMs / 1_000] }),
      figure({ name: `${connections} back, ${limit}: CPU`, unit: 's', ours: [cpuMs / 1_000] }),
      figure({ name: `${connections} back, ${limit}: sent`, unit: 'MB', ours: [messageBytes / 1e6] }),
    ]),
  ];
}

function printStep({ connections, opened, endpoint, route, memory }: ConnectionsStep): void {
  const costs = (all: readonly ChangeCost[]): string =>
    `${medianOf(all.map(({ ackMs }) => ackMs)).toFixed(0)}/${medianOf(all.map(({ cpuMs }) => cpuMs)).toFixed(0)}`;
  print(
    `  ${connections}: ${opened.connections} opened in ${opened.ms.toFixed(0)}/${opened.cpuMs.toFixed(0)}, endpoint ` +
      `${costs(endpoint)}, route ${costs(route)} ms/ms CPU; heap ${memory.heapMib.toFixed(1)}, buffers ` +
      `${memory.buffersMib.toFixed(1)}, resident ${memory.rssMib.toFixed(0)} MiB`,
  );
}
