/**
 * Cost of EndpointSlice events for one pilot-discovery, or for two checkouts simultaneously on the same API server: CPU time and memory at a constant
 * write rate, then the time from writing a slice until the last sidecar has acknowledged it.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from '../../sidecars/fleet.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import { print } from '../bench-run.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import { memoryOf } from '../memory-usage.ts';
import type { Programs } from '../programs.ts';
import { nextMark, settleMs } from '../push/push-run.ts';
import { medianOf, quantileOf } from '../statistics.ts';
import type { FilledCluster } from './filled-cluster.ts';
import { type ClusterPilot, startClusterPilot } from './following-pilot.ts';

export interface SliceEventsPlan {
  readonly sidecars: number;
  /** Rate of the sequential writes. */
  readonly eventsPerSecond: number;
  readonly seconds: number;
  /** Number of address changes in a slice, each acknowledged before the next one. */
  readonly changes: number;
  /** Absolute path of a second, already built checkout. */
  readonly beside?: string | undefined;
}

/** Result of one checkout. */
export interface SliceEventsSample {
  readonly readyCpuMs: number;
  /** CPU time of the server per written slice: the median of all windows. */
  readonly cpuOfEventMs: number;
  readonly responsesOfEvent: number;
  /** Heap after a garbage collection, with all pods known. */
  readonly heapMib: number;
  /** Heap after the events and a garbage collection. */
  readonly heapAfterMib: number;
  readonly peakMib: number;
  readonly ackMs: readonly number[];
}

/** Figures per event. */
interface Window {
  readonly cpuMs: number;
  /** EDS responses to all sidecars; fewer if one push contains several events. */
  readonly responses: number;
}

interface Subject {
  readonly pilot: ClusterPilot;
  readonly fleet: FleetProcess;
  readonly heapMib: number;
  readonly ackMs: number[];
}

/** Seconds of events before the measurement, because code that is not compiled yet costs several times as much. */
const warmUpSeconds = 4;
const windowSeconds = 3;

/** @returns the sample of this checkout, then the one of `beside` */
export async function measureSliceEvents(
  programs: Programs,
  filled: FilledCluster,
  { sidecars, eventsPerSecond, seconds, changes, beside }: SliceEventsPlan,
): Promise<readonly SliceEventsSample[]> {
  const subjects: Subject[] = [];
  for (const executable of [undefined, ...(beside === undefined ? [] : [join(beside, 'bin/pilot-discovery')])])
    subjects.push(await startSubject(programs, filled, sidecars, executable));
  await filled.writeSlices(eventsPerSecond, warmUpSeconds);
  const windows: Window[][] = [];
  for (let second = 0; second < seconds; second += windowSeconds)
    windows.push(await measureWindow(filled, subjects, eventsPerSecond));
  for (let change = 0; change < changes; change++) await measureChange(filled, subjects);
  const samples: SliceEventsSample[] = [];
  for (const [index, { pilot, fleet, heapMib, ackMs }] of subjects.entries()) {
    const heapAfterMib = (await pilot.collectedMemory()).heapMib;
    const { peakMib } = memoryOf(pilot.pid);
    samples.push({ readyCpuMs: pilot.readyCpuMs, ...medians(windows, index), heapMib, heapAfterMib, peakMib, ackMs });
    await fleet.end();
    await pilot.stop();
  }
  return samples;
}

/** Measures one window of writes that all subjects receive at the same time. */
async function measureWindow(
  filled: FilledCluster,
  subjects: readonly Subject[],
  eventsPerSecond: number,
): Promise<Window[]> {
  await sleep(settleMs);
  const startCounters = await Promise.all(subjects.map(async (subject) => countersOf(subject)));
  const { written, tookMs } = await filled.writeSlices(eventsPerSecond, windowSeconds);
  await sleep(settleMs);
  const endCounters = await Promise.all(subjects.map(async (subject) => countersOf(subject)));
  const windows = endCounters.map(({ cpuMs, responses }, index) => ({
    cpuMs: (cpuMs - startCounters[index]!.cpuMs) / written,
    responses: (responses - startCounters[index]!.responses) / written,
  }));
  print(
    `${written} slices written in ${(tookMs / 1_000).toFixed(1)} s; of each checkout, CPU of an event and its responses: ` +
      windows.map(({ cpuMs, responses }) => `${cpuMs.toFixed(2)} ms, ${responses.toFixed(1)}`).join('; '),
  );
  return windows;
}

async function countersOf({ pilot, fleet }: Subject): Promise<Window> {
  const { responses } = await fleet.counts();
  return { cpuMs: cpuTimeMs(pilot.pid), responses: responses.EDS };
}

async function startSubject(
  programs: Programs,
  filled: FilledCluster,
  sidecars: number,
  executable: string | undefined,
): Promise<Subject> {
  const pilot = await startClusterPilot(programs, filled, executable);
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await fleet.ready();
  await fleet.open({ port: pilot.port, protocol: 'delta', sidecars });
  await sleep(settleMs);
  const { heapMib } = await pilot.collectedMemory();
  return { pilot, fleet, heapMib, ackMs: [] };
}

async function measureChange(filled: FilledCluster, subjects: readonly Subject[]): Promise<void> {
  const mark = nextMark();
  const change = Promise.withResolvers<number>();
  const acknowledgements = subjects.map(async ({ fleet, ackMs }) => {
    const acknowledgedAtMs = await fleet.acknowledge({ kind: 'EDS', mark }, async () => void (await change.promise));
    ackMs.push(acknowledgedAtMs - (await change.promise));
  });
  // By then all subjects wait for the mark.
  await sleep(settleMs / 5);
  const markedAtMs = nowMs();
  await filled.markSlice(mark);
  change.resolve(markedAtMs);
  await Promise.all(acknowledgements);
}

function medians(windows: readonly Window[][], index: number) {
  const of = windows.map((window) => window[index]!);
  return {
    cpuOfEventMs: medianOf(of.map(({ cpuMs }) => cpuMs)),
    responsesOfEvent: medianOf(of.map(({ responses }) => responses)),
  };
}

const ratio = (one: number, other: number): string => `${(one / other).toFixed(2)} ×`;

/** Formats a table of this checkout, that of `beside`, and their ratio. */
export function formatSliceEvents([ours, other]: readonly SliceEventsSample[]): string[] {
  const rows: readonly (readonly [string, string, (sample: SliceEventsSample) => number])[] = [
    ['start, CPU', 'ms', ({ readyCpuMs }) => readyCpuMs],
    ['CPU for each slice event', 'ms', ({ cpuOfEventMs }) => cpuOfEventMs],
    ['responses for each slice event', '', ({ responsesOfEvent }) => responsesOfEvent],
    ['slice event → last ACK, median', 'ms', ({ ackMs }) => quantileOf(ackMs, 0.5)],
    ['slice event → last ACK, 90 %', 'ms', ({ ackMs }) => quantileOf(ackMs, 0.9)],
    ['heap with all pods', 'MiB', ({ heapMib }) => heapMib],
    ['heap after the events', 'MiB', ({ heapAfterMib }) => heapAfterMib],
    ['peak memory', 'MiB', ({ peakMib }) => peakMib],
  ];
  return rows.map(([name, unit, of]) =>
    [
      name.padEnd(34),
      `${of(ours!).toFixed(2)} ${unit}`.padStart(14),
      ...(other === undefined ? [] : [`beside ${of(other).toFixed(2)}`.padStart(18), ratio(of(ours!), of(other))]),
    ].join('  '),
  );
}
