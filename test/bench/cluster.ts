/** `npm run bench:cluster`: pilot-discovery on a real API server with many services and pods; see the usage. */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import { ClusterLoadAssignmentSchema } from '../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { AdsTestClient, typeUrls } from '../ads-client.ts';
import { eventually } from '../harness/eventually.ts';
import { nowMs } from '../sidecars/fleet.ts';
import { FleetProcess } from '../sidecars/fleet-process.ts';
import { exitWith, integerFlag, print } from './bench-run.ts';
import { type ClusterSize, FilledCluster } from './cluster/filled-cluster.ts';
import { startClusterPilot } from './cluster/following-pilot.ts';
import { formatSliceEvents, measureSliceEvents } from './cluster/slice-events.ts';
import { cpuTimeMs } from './cpu-time.ts';
import { memoryOf } from './memory-usage.ts';
import { type Programs, runWithPrograms } from './programs.ts';
import { type Figure, figure, formatFigure, missedGoals } from './push/push-figures.ts';
import { nextMark, settleMs } from './push/push-run.ts';

/** Size to which the goals apply. */
const goalSize = { services: 1_000, pods: 10_000, sidecars: 300 } as const;

const usage = `Usage: npm run bench:cluster -- [--quick] [--services N] [--pods N] [--streams N] [--changes N] [--rolled N] [--grow]
       npm run bench:cluster -- --slices [--beside FOLDER] [--services N] [--pods N] [--streams N] [--changes N] [--seconds N] [--rate N]

Fills a real API server (npm run cluster) with services, a slice and a VirtualService for each, and pods, and starts bin/pilot-discovery on it,
with simulated sidecars. The last line has all figures as JSON.

  --quick       a small size, to check that it runs
  --services N  default ${goalSize.services}
  --pods N      pods of all services, default ${goalSize.pods}
  --streams N   sidecars, default ${goalSize.sidecars}
  --changes N   changes of a pod's readiness, default 20
  --rolled N    pods that are replaced one after the other, eight services at a time, default 1000
  --grow        also measures five times as many services and pods, without sidecars
  --slices      only measures the cost of EndpointSlice events (default 100 services, 5000 pods, 20 sidecars)
  --beside DIR  with --slices: a second built checkout, which watches the same API server at the same time; prints ratios
  --seconds N   with --slices: duration of the writes, default 15
  --rate N      with --slices: written slices per second, default 50

Exit code 1 if a sidecar missed a change, a process or file was left behind, or a goal was missed (5 s until ready, 400 MiB, 250 ms from a pod's readiness until
the last sidecar has acknowledged it). Goals are for the default size on two otherwise idle cores.
`;

/** Size of a run with `--slices`. */
const sliceSize = { services: 100, pods: 5_000, sidecars: 20 } as const;

interface Settings extends ClusterSize {
  readonly sidecars: number;
  readonly changes: number;
  readonly rolled: number;
  readonly grows: boolean;
  /** If set, only the cost of EndpointSlice events is measured. */
  readonly slices?: { readonly beside?: string; readonly seconds: number; readonly eventsPerSecond: number };
}

function readSettings(): Settings | undefined {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      services: { type: 'string' },
      pods: { type: 'string' },
      streams: { type: 'string' },
      changes: { type: 'string' },
      rolled: { type: 'string' },
      grow: { type: 'boolean', default: false },
      slices: { type: 'boolean', default: false },
      beside: { type: 'string' },
      seconds: { type: 'string' },
      rate: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  const { quick } = values;
  const size = values.slices ? sliceSize : goalSize;
  const services = integerFlag('services', values.services, quick ? 30 : size.services);
  const pods = integerFlag('pods', values.pods, quick ? 300 : size.pods);
  if (services < 2 || pods % services !== 0 || pods / services > 200) {
    throw new Error('--services, --pods: expected at least two services with equally many pods in each, at most 200');
  }
  return {
    ...{ services, pods, grows: values.grow },
    sidecars: integerFlag('streams', values.streams, quick ? 20 : size.sidecars),
    changes: integerFlag('changes', values.changes, quick ? 3 : 20),
    rolled: integerFlag('rolled', values.rolled, quick ? 50 : 1_000),
    ...(values.slices && {
      slices: {
        ...(values.beside !== undefined && { beside: resolve(values.beside) }),
        seconds: integerFlag('seconds', values.seconds, quick ? 3 : 15),
        eventsPerSecond: integerFlag('rate', values.rate, 50),
      },
    }),
  };
}

/** Adds a sidecar that subscribes to endpoints. @returns its current addresses by cluster */
function subscribeToEndpoints(programs: Programs, port: number, names: readonly string[]): Map<string, string[]> {
  const heldAddresses = new Map<string, string[]>();
  const client = new AdsTestClient(port);
  programs.onEnd(async () => client.close());
  const stream = client.sotw();
  stream.onResponse = ({ typeUrl, nonce, versionInfo, resources }) => {
    for (const { value } of resources) {
      const { clusterName, endpoints } = fromBinary(ClusterLoadAssignmentSchema, value);
      const addresses = endpoints.flatMap(({ lbEndpoints }) => lbEndpoints.map(addressOf));
      heldAddresses.set(clusterName, addresses.sort());
    }
    stream.send({ typeUrl, responseNonce: nonce, versionInfo, resourceNames: [...names] });
  };
  const id = 'sidecar~192.0.2.200~follower.default~default.svc.cluster.local';
  stream.send({ node: { id, cluster: 'follower.default' }, typeUrl: typeUrls.EDS, resourceNames: [...names] });
  return heldAddresses;
}

function addressOf({ hostIdentifier }: { hostIdentifier: { case?: string | undefined; value?: unknown } }): string {
  const endpoint = hostIdentifier.value as { address?: { address: { value?: { address?: string } } } } | undefined;
  return endpoint?.address?.address.value?.address ?? '';
}

async function measure(programs: Programs, settings: Settings): Promise<Figure[]> {
  const { services, pods, sidecars, changes, rolled } = settings;
  const began = performance.now();
  const filled = await FilledCluster.create(programs, settings);
  print(`written in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  const pilot = await startClusterPilot(programs, filled);
  print(`ready after ${pilot.readyMs.toFixed(0)} ms, ${pilot.readyCpuMs.toFixed(0)} ms of CPU`);
  await pilot.printMemory('ready');
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await fleet.ready();
  const cpuBeforeOpen = cpuTimeMs(pilot.pid);
  const { openedAtMs, fullAtMs } = await fleet.open({ port: pilot.port, protocol: 'delta', sidecars });
  await sleep(settleMs);
  const initialCpuMs = cpuTimeMs(pilot.pid) - cpuBeforeOpen;
  print(`${sidecars} sidecars after ${(fullAtMs - openedAtMs).toFixed(0)} ms, ${initialCpuMs.toFixed(0)} ms of CPU`);
  await pilot.printMemory('with sidecars');
  const heldAddresses = subscribeToEndpoints(programs, pilot.port, [...filled.addresses().keys()]);
  const readiness: { ackMs: number; cpuMs: number }[] = [];
  // The first change warms up the code and is not measured.
  for (let change = 0; change <= changes; change++) {
    const mark = nextMark();
    await filled.prepareReadiness(mark);
    await sleep(settleMs);
    const baseline = cpuTimeMs(pilot.pid);
    let changedAtMs = 0;
    const atMs = await fleet.acknowledge({ kind: 'EDS', mark }, async () => {
      changedAtMs = nowMs();
      await filled.becomeReady();
    });
    await sleep(settleMs);
    if (change > 0) readiness.push({ ackMs: atMs - changedAtMs, cpuMs: cpuTimeMs(pilot.pid) - baseline });
  }
  const rolling = await roll(filled, fleet, pilot.pid, rolled);
  await pilot.printMemory('after the rolling restart');
  await eventually('one more sidecar has what is there', () => hasSameAddresses(heldAddresses, filled.addresses()), {
    deadlineMs: 60_000,
  });
  const { peakMib } = memoryOf(pilot.pid);
  await fleet.end();
  await pilot.stop();
  const isGoalSize = services === goalSize.services && pods === goalSize.pods && sidecars === goalSize.sidecars;
  const goal = (value: number) => (isGoalSize ? { goal: value } : {});
  return [
    figure({ name: 'start until ready', unit: 's', ours: [pilot.readyMs / 1_000], ...goal(5) }),
    figure({ name: 'start, CPU', unit: 's', ours: [pilot.readyCpuMs / 1_000] }),
    figure({ name: 'sidecars, initial wall', unit: 's', ours: [(fullAtMs - openedAtMs) / 1_000] }),
    figure({ name: 'sidecars, initial CPU', unit: 's', ours: [initialCpuMs / 1_000] }),
    figure({ name: 'readiness → last ACK', unit: 'ms', ours: readiness.map(({ ackMs }) => ackMs), ...goal(250) }),
    figure({ name: 'readiness, CPU', unit: 'ms', ours: readiness.map(({ cpuMs }) => cpuMs) }),
    ...rolling,
    figure({ name: 'peak memory', unit: 'MiB', ours: [peakMib], ...goal(400) }),
  ];
}

/** Replaces pods as fast as the API server accepts the writes. */
async function roll(filled: FilledCluster, fleet: FleetProcess, pid: number, pods: number): Promise<Figure[]> {
  const mark = nextMark();
  const baseline = { cpuMs: cpuTimeMs(pid), counts: await fleet.counts(), atMs: nowMs() };
  let replacedCount = 0;
  let writtenAtMs = 0;
  const change = async (): Promise<void> => {
    replacedCount = await filled.roll(pods, mark);
    writtenAtMs = nowMs();
  };
  const atMs = await fleet.acknowledge({ kind: 'EDS', mark }, change, 600_000);
  await sleep(settleMs);
  const cpuMs = cpuTimeMs(pid) - baseline.cpuMs;
  const { responses } = await fleet.counts();
  const seconds = (writtenAtMs - baseline.atMs) / 1_000;
  print(
    `${replacedCount} pods replaced in ${seconds.toFixed(1)} s (${(replacedCount / seconds).toFixed(0)} a second): ` +
      `${responses.EDS - baseline.counts.responses.EDS} responses to all sidecars, ${cpuMs.toFixed(0)} ms of CPU`,
  );
  return [
    figure({ name: 'rolling restart, CPU for each pod', unit: 'ms', ours: [cpuMs / replacedCount] }),
    figure({ name: 'rolling restart, last write → last ACK', unit: 'ms', ours: [Math.max(0, atMs - writtenAtMs)] }),
  ];
}

function hasSameAddresses(
  heldAddresses: ReadonlyMap<string, string[]>,
  expectedAddresses: ReadonlyMap<string, string[]>,
): boolean {
  return [...expectedAddresses].every(([name, addresses]) => heldAddresses.get(name)?.join() === addresses.join());
}

/** Measures how start time and memory grow with the size of the cluster. */
async function measureGrowth(programs: Programs, { services, pods }: ClusterSize): Promise<Figure[]> {
  const filled = await FilledCluster.create(programs, { services: services * 5, pods: pods * 5 });
  const pilot = await startClusterPilot(programs, filled);
  const { peakMib } = memoryOf(pilot.pid);
  await pilot.stop();
  return [
    figure({ name: 'five times as much: start until ready', unit: 's', ours: [pilot.readyMs / 1_000] }),
    figure({ name: 'five times as much: start, CPU', unit: 's', ours: [pilot.readyCpuMs / 1_000] }),
    figure({ name: 'five times as much: peak memory of the start', unit: 'MiB', ours: [peakMib] }),
  ];
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) {
    process.stdout.write(usage);
    return 0;
  }
  const { services, pods, sidecars, slices } = settings;
  print(`${services} services, ${pods} pods, ${sidecars} sidecars`);
  if (slices !== undefined) return compareSliceEvents(settings, slices);
  const figures: Figure[] = [];
  const problems = await runWithPrograms(async (programs) => {
    figures.push(...(await measure(programs, settings)));
    if (settings.grows) figures.push(...(await measureGrowth(programs, settings)));
  });
  for (const eachFigure of figures) print(formatFigure(eachFigure));
  const all = [...problems, ...figures.flatMap(missedGoals)];
  for (const problem of all) print(problem);
  if (figures.length > 0) print(JSON.stringify({ services, pods, sidecars, figures }));
  return all.length === 0 ? 0 : 1;
}

async function compareSliceEvents(settings: Settings, slices: NonNullable<Settings['slices']>): Promise<number> {
  const { sidecars, changes } = settings;
  const problems = await runWithPrograms(async (programs) => {
    const filled = await FilledCluster.create(programs, settings);
    const samples = await measureSliceEvents(programs, filled, { sidecars, changes, ...slices });
    for (const line of formatSliceEvents(samples)) print(line);
    print(JSON.stringify({ ...settings, samples }));
  });
  for (const problem of problems) print(problem);
  return problems.length === 0 ? 0 : 1;
}

await exitWith(main);
