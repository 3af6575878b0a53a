/**
 * How slow the machine is at present: processor time too grows with processes that share caches, and with a processor that is
 * shared in turns. The same work is done here and now, and compared to what it takes on the two quiet cores on which limits in
 * milliseconds were set.
 */
import { threadCpuMsOf } from './cpu-time.ts';

/** Duration of {@link referenceWork} there. */
const referenceMs = 24;
/** The first run compiles it. */
const times = 6;

/** Objects, texts, a sort: typical work of a server, and of a page. It has no external references, so that a page can run it. */
export function referenceWork(): number {
  const rows = Array.from({ length: 20_000 }, (_, index) => ({
    index,
    name: `actor-${(index * 7919) % 10_007}`,
    of: [index],
  }));
  const read = JSON.parse(JSON.stringify(rows)) as typeof rows;
  const byName = Map.groupBy(read, ({ name }) => name);
  return [...byName].sort(([one], [other]) => (one < other ? -1 : 1)).length;
}

/**
 * @param costOf does the work once, and returns its milliseconds of processor time: of this thread by default
 * @returns how many times as long the same work takes as on a quiet machine; never below 1
 */
export async function slowness(
  costOf: () => number | Promise<number> = () => threadCpuMsOf(referenceWork),
): Promise<number> {
  const costs: number[] = [];
  for (let time = 0; time < times; time++) costs.push(await costOf());
  const [, , median = 0] = costs.slice(1).sort((one, other) => one - other);
  return Math.max(1, median / referenceMs);
}
