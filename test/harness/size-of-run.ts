/**
 * How long a test searches at random, repeats or explores. `npm test` finds frequent errors quickly; `npm run test:nightly` sets
 * `CHARTPILOT_TESTS=full` and does the same at length; `npm run test:quick` sets `quick` and omits the longest part.
 */
const size = process.env.CHARTPILOT_TESTS;

/** A quick run omits deliberately broken components, which show what the checks detect and not that the machines are right. */
export const isQuick = size === 'quick';

/** Whether this is `npm run test:nightly`. */
export const isFull = size === 'full';

/** @param sizes.quick default: the value of `short` */
export function sized<Size>(sizes: { readonly quick?: Size; readonly short: Size; readonly full: Size }): Size {
  if (isFull) return sizes.full;
  return isQuick ? (sizes.quick ?? sizes.short) : sizes.short;
}
