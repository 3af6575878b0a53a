/** How much more something costs when there is more of it: seconds say little on a machine that others use. */

const tries = 3;

/**
 * Cost with many as a multiple of the cost with few; the least of some tries of each, one after the other.
 *
 * @param costOf milliseconds with so many
 */
export function growthOf(costOf: (count: number) => number, few: number, many: number): number {
  let [little, much] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let i = 0; i < tries; i++) {
    little = Math.min(little, costOf(few));
    much = Math.min(much, costOf(many));
  }
  return much / little;
}
