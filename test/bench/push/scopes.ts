/**
 * Cost of one changed rule in a mesh with hundreds of namespaces and thousands of services: with public services, with one private service, and with
 * a Sidecar object in each namespace. In the restricted meshes, a change may cost little more and must not leak memory.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../harness/free-ports.ts';
import { Inspector } from '../../harness/inspector.ts';
import { nowMs } from '../../sidecars/fleet.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import { print } from '../bench-run.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import type { Programs } from '../programs.ts';
import { medianOf } from '../statistics.ts';
import { collectedMemory } from './collected-memory.ts';
import { type MeshVariety, noVariety } from './mesh-files.ts';
import { type Figure, figure, grownFigure } from './push-figures.ts';
import { kindOfChange, nextMark, settleMs } from './push-run.ts';
import { type PushServer, waitForPort } from './servers.ts';
import type { AllMeasuredServers } from './subjects.ts';

/** Size of issue 17: a sidecar in each namespace. */
export const scopesGoalSize: ScopesPlan = { services: 5_000, sidecars: 300, changes: 200 };
const namespaces = 300;

/** Mesh with which others are compared. */
const baseMesh = 'public';

/**
 * With twenty ports, a route configuration has 250 of 5,000 services. With one port every change would send 3 MB to
 * each sidecar, which would hide the cost of the scopes.
 */
const inNamespaces: MeshVariety = { ...noVariety, namespaces, ports: 20 };

export const scopeMeshes: Readonly<Record<string, MeshVariety>> = {
  [baseMesh]: inNamespaces,
  'one private service': { ...inNamespaces, privateServices: 'one' },
  'a Sidecar in each': { ...inNamespaces, sidecars: 'all' },
};

/** Maximum CPU time of a change, relative to the base mesh of the same size. It applies to every size. */
const maxGrowth = 3;
/** Maximum heap growth over all changes of a full run. After fewer changes, compiled code and caches grow more. */
const maxHeapGrowth = 1.1;

export interface ScopesPlan {
  readonly services: number;
  readonly sidecars: number;
  /** Changes of each mesh: half of a VirtualService, half of a DestinationRule. */
  readonly changes: number;
}

const measuredChanges = { route: 'a VirtualService', rule: 'a DestinationRule' } as const;
type MeasuredChange = keyof typeof measuredChanges;
const kinds = Object.keys(measuredChanges) as MeasuredChange[];

/** Consecutive changes. */
interface Batch {
  readonly cpuMs: number;
  readonly ackMs: number;
}

interface ScopesSample {
  readonly batches: Readonly<Record<MeasuredChange, readonly Batch[]>>;
  readonly initialCpuMs: number;
  /** Measured after a garbage collection, before and after the changes. */
  readonly heapMib: readonly [before: number, after: number];
}

/** Batches of the two types alternate. */
const batchesOfEach = 4;

/** Measures each mesh with new processes, and repeats all meshes in the next round. */
export async function measureScopes(
  programs: Programs,
  subjects: AllMeasuredServers,
  plan: ScopesPlan,
  rounds: number,
): Promise<Figure[]> {
  const samples = new Map<string, ScopesSample[]>(Object.keys(scopeMeshes).map((mesh) => [mesh, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const [mesh, all] of samples) {
      const { startPilot } = await subjects.serversFor(plan.services, scopeMeshes[mesh]);
      const [inspectorPort] = await freePorts(1);
      const env = { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` };
      const sample = await measure(programs, await startPilot({ debounce: '1ms', env }), inspectorPort!, plan);
      printSample(`${mesh}, round ${round}/${rounds}`, sample);
      all.push(sample);
    }
  }
  return scopeFigures(samples, plan);
}

async function measure(
  programs: Programs,
  server: PushServer,
  inspectorPort: number,
  { sidecars, changes }: ScopesPlan,
): Promise<ScopesSample> {
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await waitForPort(server);
  await fleet.ready();
  await sleep(settleMs);
  const cpuBefore = cpuTimeMs(server.pid);
  await fleet.open({ port: server.port, protocol: 'delta', sidecars, namespaces });
  await sleep(settleMs);
  const initialCpuMs = cpuTimeMs(server.pid) - cpuBefore;
  const inspector = await Inspector.attach(inspectorPort);
  const size = Math.max(1, Math.floor(changes / 2 / batchesOfEach));
  // Warms up code and caches.
  for (const kind of kinds) await changeRepeatedly(server, fleet, kind, size);
  const initialMemory = await collectedMemory(server.pid, inspector);
  const batches: Record<MeasuredChange, Batch[]> = { route: [], rule: [] };
  for (let batch = 0; batch < batchesOfEach; batch++) {
    for (const kind of kinds) batches[kind].push(await changeRepeatedly(server, fleet, kind, size));
  }
  const memoryAfter = await collectedMemory(server.pid, inspector);
  inspector.close();
  await fleet.end();
  await server.stop();
  return { batches, initialCpuMs, heapMib: [initialMemory.heapMib, memoryAfter.heapMib] };
}

/** Each change waits until the last sidecar has acknowledged the previous one. */
async function changeRepeatedly(
  server: PushServer,
  fleet: FleetProcess,
  kind: MeasuredChange,
  times: number,
): Promise<Batch> {
  const cpuBefore = cpuTimeMs(server.pid);
  const ackMs: number[] = [];
  for (let i = 0; i < times; i++) {
    const mark = nextMark();
    let changedAtMs = nowMs();
    const acknowledgedAtMs = await fleet.acknowledge({ kind: kindOfChange[kind], mark }, async () => {
      changedAtMs = await server.change(kind, mark);
    });
    ackMs.push(acknowledgedAtMs - changedAtMs);
  }
  await sleep(settleMs);
  return { cpuMs: (cpuTimeMs(server.pid) - cpuBefore) / times, ackMs: medianOf(ackMs) };
}

export function scopeFigures(
  samples: ReadonlyMap<string, readonly ScopesSample[]>,
  { services, changes }: ScopesPlan,
): Figure[] {
  const base = samples.get(baseMesh)!;
  return [...samples].flatMap(([mesh, all]) => {
    const name = `${services} services × ${namespaces} namespaces, ${mesh}`;
    const against = mesh === baseMesh ? undefined : base;
    const batchValues = (kind: MeasuredChange, value: (batch: Batch) => number) => (from: readonly ScopesSample[]) =>
      from.flatMap(({ batches }) => batches[kind].map(value));
    const heap = grownFigure(
      { name: `${name}: heap after ${changes} changes`, unit: 'MiB', ours: all.map(({ heapMib }) => heapMib[1]) },
      { of: 'the heap before', values: all.map(({ heapMib }) => heapMib[0]) },
      changes >= scopesGoalSize.changes ? maxHeapGrowth : undefined,
    );
    return [
      figure({ name: `${name}: initial CPU`, unit: 's', ours: all.map(({ initialCpuMs }) => initialCpuMs / 1_000) }),
      ...kinds.flatMap((kind) => {
        const cpu = batchValues(kind, ({ cpuMs }) => cpuMs);
        const baseFigure = { name: `${name}: ${measuredChanges[kind]}, CPU`, unit: 'ms', ours: cpu(all) } as const;
        return [
          against === undefined
            ? figure(baseFigure)
            : grownFigure(baseFigure, { of: baseMesh, values: cpu(against) }, maxGrowth),
          figure({
            name: `${name}: ${measuredChanges[kind]} → last ACK`,
            unit: 'ms',
            ours: batchValues(kind, ({ ackMs }) => ackMs)(all),
          }),
        ];
      }),
      heap,
    ];
  });
}

function printSample(label: string, { batches, initialCpuMs, heapMib }: ScopesSample): void {
  const costs = kinds.map(
    (kind) =>
      `${measuredChanges[kind]} ${batches[kind].map(({ ackMs, cpuMs }) => `${ackMs.toFixed(0)}/${cpuMs.toFixed(0)}`).join(' ')}`,
  );
  print(
    `  ${label}: initial CPU ${(initialCpuMs / 1_000).toFixed(1)} s, ${costs.join(', ')} ms/ms CPU, ` +
      `heap ${heapMib.map((mib) => mib.toFixed(1)).join(' → ')} MiB`,
  );
}
