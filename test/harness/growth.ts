/** Measures how cost grows with the amount of work: absolute times mean little on a shared machine. */

const tries = 3;

/**
 * Cost with `many` as a multiple of the cost with `few`; the minimum of alternating attempts of each.
 * @param costOf milliseconds for this size
 */
export function growthOf(costOf: (count: number) => number, fewItems: number, manyItems: number): number {
  let [little, much] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let i = 0; i < tries; i++) {
    little = Math.min(little, costOf(fewItems));
    much = Math.min(much, costOf(manyItems));
  }
  return much / little;
}
