/**
 * How slow the machine currently is. Processor time also grows with processes that share caches or the processor. The same reference work is timed
 * now and compared with the two quiet cores on which limits in milliseconds were set.
 */
import { threadCpuMsOf } from './cpu-time.ts';

/** Milliseconds of {@link referenceWork} on a quiet core. */
const referenceMs = 24;
/** Number of runs; the first one compiles the code. */
const times = 6;

/** Objects, strings and a sort: typical work of a server and of a page. It has no external references, so a page can run it. */
export function referenceWork(): number {
  const rows = Array.from({ length: 20_000 }, (_, index) => ({
    index,
    name: `actor-${(index * 7919) % 10_007}`,
    of: [index],
  }));
  const read = JSON.parse(JSON.stringify(rows)) as typeof rows;
  const itemsByName = Map.groupBy(read, ({ name }) => name);
  return [...itemsByName].sort(([one], [other]) => (one < other ? -1 : 1)).length;
}

/**
 * @param costOf does the work once, and returns its processor time in milliseconds (default: of this thread)
 * @returns how many times as long the same work takes as on a quiet machine, at least 1
 */
export async function slowness(
  costOf: () => number | Promise<number> = () => threadCpuMsOf(referenceWork),
): Promise<number> {
  const costs: number[] = [];
  for (let time = 0; time < times; time++) costs.push(await costOf());
  const [, , median = 0] = costs.slice(1).sort((one, other) => one - other);
  return Math.max(1, median / referenceMs);
}
