/**
 * What one changed rule costs where hundreds of namespaces see thousands of services: whether all is public, one service is
 * private or each namespace has a Sidecar object, a change may cost little more, and leaves nothing behind.
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
import type { Subjects } from './subjects.ts';

/** As issue 17 wants it: a sidecar in each namespace. */
export const scopesGoalSize: ScopesPlan = { services: 5_000, sidecars: 300, changes: 200 };
const namespaces = 300;

/** Other meshes are held against the first. */
const baseMesh = 'public';

/**
 * On twenty ports, a route configuration holds 250 of 5,000 services: on one port every change would send 3 MB to each sidecar,
 * and the cost of that would hide what finding out costs.
 */
const inNamespaces: MeshVariety = { ...noVariety, namespaces, ports: 20 };

export const scopeMeshes: Readonly<Record<string, MeshVariety>> = {
  [baseMesh]: inNamespaces,
  'one private service': { ...inNamespaces, privateServices: 'one' },
  'a Sidecar in each': { ...inNamespaces, sidecars: 'all' },
};

/** Of the CPU of a change, beside that of the first mesh of the same size, whatever the size. */
const mostGrowth = 3;
/** Of the heap over all changes, if they are as many as wanted: what is compiled and remembered of a few comes to more. */
const mostHeapGrowth = 1.1;

export interface ScopesPlan {
  readonly services: number;
  readonly sidecars: number;
  /** Of each mesh: half of them of a virtual service, half of a destination rule. */
  readonly changes: number;
}

const measuredChanges = { route: 'a VirtualService', rule: 'a DestinationRule' } as const;
type MeasuredChange = keyof typeof measuredChanges;
const kinds = Object.keys(measuredChanges) as MeasuredChange[];

/** Changes in a row. */
interface Batch {
  readonly cpuMs: number;
  readonly ackMs: number;
}

interface ScopesSample {
  readonly batches: Readonly<Record<MeasuredChange, readonly Batch[]>>;
  readonly initialCpuMs: number;
  /** After a collection: before the changes that are measured, and after them. */
  readonly heapMib: readonly [before: number, after: number];
}

/** Changes are measured in so many batches of each kind, in turns. */
const batchesOfEach = 4;

/** Mesh after mesh, with new processes; all of them again in the next round. */
export async function measureScopes(
  programs: Programs,
  subjects: Subjects,
  plan: ScopesPlan,
  rounds: number,
): Promise<Figure[]> {
  const samples = new Map<string, ScopesSample[]>(Object.keys(scopeMeshes).map((mesh) => [mesh, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const [mesh, all] of samples) {
      const { startPilot } = await subjects.of(plan.services, scopeMeshes[mesh]);
      const [inspectorPort] = await freePorts(1);
      const env = { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` };
      const sample = await measure(programs, await startPilot({ debounce: '1ms', env }), inspectorPort!, plan);
      tell(`${mesh}, round ${round}/${rounds}`, sample);
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
  // The code is not warm, and what is remembered of the last changes is not there yet.
  for (const kind of kinds) await changeInARow(server, fleet, kind, size);
  const before = await collectedMemory(server.pid, inspector);
  const batches: Record<MeasuredChange, Batch[]> = { route: [], rule: [] };
  for (let batch = 0; batch < batchesOfEach; batch++) {
    for (const kind of kinds) batches[kind].push(await changeInARow(server, fleet, kind, size));
  }
  const after = await collectedMemory(server.pid, inspector);
  inspector.close();
  await fleet.end();
  await server.stop();
  return { batches, initialCpuMs, heapMib: [before.heapMib, after.heapMib] };
}

/** Each change waits until the last sidecar has acknowledged the one before. */
async function changeInARow(
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
    const atMs = await fleet.acknowledge({ kind: kindOfChange[kind], mark }, async () => {
      changedAtMs = await server.change(kind, mark);
    });
    ackMs.push(atMs - changedAtMs);
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
    const ofBatches = (kind: MeasuredChange, value: (batch: Batch) => number) => (from: readonly ScopesSample[]) =>
      from.flatMap(({ batches }) => batches[kind].map(value));
    const heap = grownFigure(
      { name: `${name}: heap after ${changes} changes`, unit: 'MiB', ours: all.map(({ heapMib }) => heapMib[1]) },
      { of: 'the heap before', values: all.map(({ heapMib }) => heapMib[0]) },
      changes >= scopesGoalSize.changes ? mostHeapGrowth : undefined,
    );
    return [
      figure({ name: `${name}: initial CPU`, unit: 's', ours: all.map(({ initialCpuMs }) => initialCpuMs / 1_000) }),
      ...kinds.flatMap((kind) => {
        const cpu = ofBatches(kind, ({ cpuMs }) => cpuMs);
        const what = { name: `${name}: ${measuredChanges[kind]}, CPU`, unit: 'ms', ours: cpu(all) } as const;
        return [
          against === undefined ? figure(what) : grownFigure(what, { of: baseMesh, values: cpu(against) }, mostGrowth),
          figure({
            name: `${name}: ${measuredChanges[kind]} → last ACK`,
            unit: 'ms',
            ours: ofBatches(kind, ({ ackMs }) => ackMs)(all),
          }),
        ];
      }),
      heap,
    ];
  });
}

function tell(what: string, { batches, initialCpuMs, heapMib }: ScopesSample): void {
  const costs = kinds.map(
    (kind) =>
      `${measuredChanges[kind]} ${batches[kind].map(({ ackMs, cpuMs }) => `${ackMs.toFixed(0)}/${cpuMs.toFixed(0)}`).join(' ')}`,
  );
  print(
    `  ${what}: initial CPU ${(initialCpuMs / 1_000).toFixed(1)} s, ${costs.join(', ')} ms/ms CPU, ` +
      `heap ${heapMib.map((mib) => mib.toFixed(1)).join(' → ')} MiB`,
  );
}
