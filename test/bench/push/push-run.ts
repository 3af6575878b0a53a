/** One round with one server: all sidecars connect, endpoints change, routes change. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type FleetCounts, type FleetPlan, nowMs } from '../../sidecars/fleet.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import type { XdsProtocol } from '../../sidecars/xds-types.ts';
import { print } from '../bench-run.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import { memoryOf } from '../memory-usage.ts';
import type { Programs } from '../programs.ts';
import { type MeshChange, markOf } from './mesh-files.ts';
import { type PushServer, type StartServer, waitForPort } from './servers.ts';

export interface PushPlan {
  readonly protocol: XdsProtocol;
  readonly sidecars: number;
  /** Measured changes of each type. One unmeasured change precedes them. */
  readonly changes: number;
  /** Overrides of the default plan of sidecars. */
  readonly fleet?: Partial<FleetPlan>;
  /** Whether changes affect only the first namespace's sidecars. */
  readonly isOfFirstNamespace?: boolean;
}

export interface ChangeSample {
  /** Time from the change until the last sidecar has acknowledged it. */
  readonly ackMs: number;
  /** CPU time of the server until it is idle. */
  readonly cpuMs: number;
  readonly clientCpuMs: number;
  readonly messageBytes: number;
}

export interface PushSample {
  /** Time from the first connect until the last sidecar has all resources. */
  readonly initialMs: number;
  readonly initialCpuMs: number;
  readonly initialClientCpuMs: number;
  readonly initialBytes: number;
  readonly rssMib: number;
  readonly peakMib: number;
  readonly endpoint: readonly ChangeSample[];
  readonly route: readonly ChangeSample[];
}

/** Time after an event for messages that client and server have not processed yet. */
export const settleMs = 500;
export const kindOfChange = { endpoint: 'EDS', route: 'RDS', rule: 'CDS' } as const;
let marks = 0;
/** Returns a different mark on each call. */
export const nextMark = (): string => markOf(marks++);

export async function runPushes(programs: Programs, start: StartServer, plan: PushPlan): Promise<PushSample> {
  const server = await start();
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await waitForPort(server);
  await fleet.ready();
  await sleep(settleMs);
  const sample = await measure(server, fleet, plan);
  await fleet.end();
  await server.stop();
  return sample;
}

async function measure(server: PushServer, fleet: FleetProcess, plan: PushPlan): Promise<PushSample> {
  const { protocol, sidecars, changes, isOfFirstNamespace = false } = plan;
  const baseline = cpuTimeMs(server.pid);
  const { openedAtMs, fullAtMs } = await fleet.open({ port: server.port, protocol, sidecars, ...plan.fleet });
  await sleep(settleMs);
  const initialCpuMs = cpuTimeMs(server.pid) - baseline;
  const { rssMib } = memoryOf(server.pid);
  const initial = await fleet.counts();
  const endpoint = await changeOften(server, fleet, 'endpoint', changes, isOfFirstNamespace);
  const route = await changeOften(server, fleet, 'route', changes, isOfFirstNamespace);
  return {
    initialMs: fullAtMs - openedAtMs,
    initialCpuMs,
    initialClientCpuMs: initial.cpuMs,
    initialBytes: initial.messageBytes,
    rssMib,
    peakMib: memoryOf(server.pid).peakMib,
    endpoint,
    route,
  };
}

async function changeOften(
  server: PushServer,
  fleet: FleetProcess,
  change: MeshChange,
  times: number,
  isOfFirstNamespace: boolean,
): Promise<ChangeSample[]> {
  await changeOnce(server, fleet, change, isOfFirstNamespace);
  const samples: ChangeSample[] = [];
  for (let i = 0; i < times; i++) samples.push(await changeOnce(server, fleet, change, isOfFirstNamespace));
  return samples;
}

/** Applies a change and waits until the server is idle. */
export async function changeOnce(
  server: PushServer,
  fleet: FleetProcess,
  change: MeshChange,
  isOfFirstNamespace = false,
): Promise<ChangeSample> {
  const mark = nextMark();
  const baseline = await readings(server, fleet);
  let changedAtMs = nowMs();
  const acknowledgedAtMs = await fleet.acknowledge(
    { kind: kindOfChange[change], mark, isOfFirstNamespace },
    async () => {
      changedAtMs = await server.change(change, mark);
    },
  );
  await sleep(settleMs);
  const endReadings = await readings(server, fleet);
  return {
    ackMs: acknowledgedAtMs - changedAtMs,
    cpuMs: endReadings.cpuMs - baseline.cpuMs,
    clientCpuMs: endReadings.counts.cpuMs - baseline.counts.cpuMs,
    messageBytes: endReadings.counts.messageBytes - baseline.counts.messageBytes,
  };
}

async function readings(server: PushServer, fleet: FleetProcess): Promise<{ cpuMs: number; counts: FleetCounts }> {
  const counts = await fleet.counts();
  return { cpuMs: cpuTimeMs(server.pid), counts };
}

export function printSample(label: string, { initialMs, initialCpuMs, endpoint, route, peakMib }: PushSample): void {
  const all = (samples: PushSample['endpoint']): string =>
    samples.map(({ ackMs, cpuMs }) => `${ackMs.toFixed(0)}/${cpuMs.toFixed(0)}`).join(' ');
  print(
    `  ${label} initial ${initialMs.toFixed(0)}/${initialCpuMs.toFixed(0)}, endpoint ${all(endpoint)}, ` +
      `route ${all(route)} ms/ms CPU, peak ${peakMib.toFixed(0)} MiB`,
  );
}
