/**
 * How long a test searches at random, repeats or explores. `npm test` does what finds an error soon; `npm run test:nightly`
 * sets `CHARTPILOT_TESTS=full` and does the same at length, `npm run test:quick` sets `quick` and leaves the longest part out.
 */
const size = process.env.CHARTPILOT_TESTS;

/**
 * A quick run omits components that are broken on purpose: they show what the checks detect, and not that the machines are
 * right.
 */
export const isQuick = size === 'quick';

/** `npm run test:nightly`. */
export const isFull = size === 'full';

/** @param size.quick the same as `short` unless given */
export function sized<Size>(sizes: { readonly quick?: Size; readonly short: Size; readonly full: Size }): Size {
  if (isFull) return sizes.full;
  return isQuick ? (sizes.quick ?? sizes.short) : sizes.short;
}
