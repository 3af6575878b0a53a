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

export interface MemorySample {
  /** Time since the start of the churn. */
  readonly atMs: number;
  readonly rssMib: number;
  /** Live heap after a garbage collection. */
  readonly heapMib: number;
}

/** Allowed increase from the second minute to the last quarter. */
const growthAllowance = { heap: { share: 0.1, mib: 4 }, rss: { share: 0.15, mib: 20 } } as const;

/** Shorter runs are not checked for growth, because their last quarter would overlap the second minute. */
export const minCheckedMs = 3 * 60_000;

export const growthRule =
  'the median of the last quarter is at most that of the second minute and ' +
  `${growthAllowance.heap.share * 100} % or ${growthAllowance.heap.mib} MiB (heap after a collection), ` +
  `${growthAllowance.rss.share * 100} % or ${growthAllowance.rss.mib} MiB (resident)`;

/** @returns one sentence for each figure that grew */
export function growthProblems(samples: readonly MemorySample[], lastedMs: number): string[] {
  if (lastedMs < minCheckedMs) return [];
  const early = samples.filter(({ atMs }) => atMs >= 60_000 && atMs < 120_000);
  const late = samples.filter(({ atMs }) => atMs >= lastedMs * 0.75);
  if (early.length === 0 || late.length === 0)
    return ['memory was not sampled in the second minute and in the last quarter'];
  return (['heap', 'rss'] as const).flatMap((figure) => {
    const median = (some: readonly MemorySample[]): number => medianOf(some.map((sample) => sample[`${figure}Mib`]));
    const [earlyMib, lateMib] = [median(early), median(late)];
    const { share, mib } = growthAllowance[figure];
    if (lateMib <= earlyMib + Math.max(earlyMib * share, mib)) return [];
    return [
      `${figure === 'heap' ? 'the heap' : 'resident memory'} grew from ${earlyMib.toFixed(1)} to ${lateMib.toFixed(1)} MiB`,
    ];
  });
}
