/** Checks of the final state. Pure. */
import { medianOf } from '../bench/statistics.ts';

/** Digests of resources by type and name. */
export type Holdings = Readonly<Record<string, ReadonlyMap<string, string>>>;

/**
 * One line for each resource that only one proxy has, or whose content differs.
 *
 * @param mayKeep whether the first proxy may have a cluster, with its endpoints, that the other one lacks
 */
export function differences(
  has: Holdings,
  should: Holdings,
  mayKeep: (cluster: string) => boolean = () => false,
): string[] {
  return Object.keys(should).flatMap((kind) => {
    const [mine, theirs] = [has[kind] ?? new Map<string, string>(), should[kind]!];
    const missing = [...theirs.keys()].filter((name) => !mine.has(name));
    const isOfCluster = kind === 'CDS' || kind === 'EDS';
    const stale = [...mine.keys()].filter((name) => !theirs.has(name) && !(isOfCluster && mayKeep(name)));
    const old = [...theirs].filter(([name, digest]) => mine.has(name) && mine.get(name) !== digest);
    return [
      ...missing.map((name) => `${kind} ${name} is missing`),
      ...stale.map((name) => `${kind} ${name} should be removed`),
      ...old.map(([name]) => `${kind} ${name} is not the latest`),
    ];
  });
}

/**
 * One line for each service that the proxy sees against its scope, or that it should see and has no cluster for.
 *
 * @param mayKeep as of {@link differences}
 */
export function hostDifferences(
  clusters: Iterable<string>,
  hosts: readonly string[],
  mayKeep: (cluster: string) => boolean = () => false,
): string[] {
  const names = [...clusters];
  const hostsOf = (some: readonly string[]): Set<string> =>
    new Set(some.flatMap((name) => /^outbound\|\d+\|[^|]*\|(.+)$/.exec(name)?.[1] ?? []));
  const has = hostsOf(names);
  const shown = hostsOf(names.filter((name) => !mayKeep(name)));
  const should = new Set(hosts);
  return [
    ...[...should].filter((host) => !has.has(host)).map((host) => `it should see ${host}`),
    ...[...shown].filter((host) => !should.has(host)).map((host) => `it should not see ${host}`),
  ];
}

export interface ResourceSample {
  /** Age of the process. */
  readonly atMs: number;
  readonly rssMib: number;
  /** Live heap after a garbage collection. */
  readonly heapMib: number;
  /** Open file descriptors. */
  readonly descriptors: number;
}

interface Figure {
  readonly key: 'heapMib' | 'rssMib' | 'descriptors';
  readonly label: string;
  readonly unit: string;
  /** Allowed increase: a share, and a minimum in the unit. */
  readonly share: number;
  readonly min: number;
}

const figures: readonly Figure[] = [
  { key: 'heapMib', label: 'the heap', unit: 'MiB', share: 0.1, min: 4 },
  { key: 'rssMib', label: 'resident memory', unit: 'MiB', share: 0.15, min: 20 },
  { key: 'descriptors', label: 'the number of descriptors', unit: 'descriptors', share: 0.1, min: 8 },
];

/** With a shorter time between restarts, processes are not compared, because few or none of them are sampled in its second half. */
const minLifeMs = 60_000;

/** Shorter runs are not checked for growth, because their last quarter would overlap the second minute. */
export const minCheckedMs = 3 * 60_000;

export const growthRule =
  'the median of the last quarter is at most that of the second minute (with restarts, of processes at equal age: of the first quarter), and ' +
  figures.map(({ label, unit, share, min }) => `${share * 100} % or ${min} ${unit} (${label})`).join(', ');

/** @returns one sentence for each figure that grew */
export function growthProblems(samples: readonly ResourceSample[], lastedMs: number): string[] {
  if (lastedMs < minCheckedMs) return [];
  const early = samples.filter(({ atMs }) => atMs >= 60_000 && atMs < 120_000);
  const late = samples.filter(({ atMs }) => atMs >= lastedMs * 0.75);
  if (early.length === 0 || late.length === 0)
    return ['memory was not sampled in the second minute and in the last quarter'];
  return grown(early, late, '');
}

/**
 * Compares the first quarter of the processes with the last one, at equal age: in the second half of the time between
 * restarts.
 *
 * @param lives samples of each process
 * @returns one sentence for each figure that grew
 */
export function growthOverLives(lives: readonly (readonly ResourceSample[])[], restartEveryMs: number): string[] {
  if (restartEveryMs < minLifeMs) return [];
  const aged = lives
    .map((samples) => samples.filter(({ atMs }) => atMs >= restartEveryMs / 2 && atMs < restartEveryMs))
    .filter(({ length }) => length > 0);
  if (aged.length < 2) return ['too few restarted processes were sampled in the second half of their time'];
  const quarter = Math.max(1, Math.floor(aged.length / 4));
  return grown(aged.slice(0, quarter).flat(), aged.slice(-quarter).flat(), ' over the restarts');
}

function grown(early: readonly ResourceSample[], late: readonly ResourceSample[], period: string): string[] {
  return figures.flatMap(({ key, label, unit, share, min }) => {
    const [from, to] = [early, late].map((samples) => medianOf(samples.map((sample) => sample[key]))) as [
      number,
      number,
    ];
    if (to <= from + Math.max(from * share, min)) return [];
    return [`${label} grew${period} from ${from.toFixed(1)} to ${to.toFixed(1)} ${unit}`];
  });
}
