/**
 * How long a test searches at random, repeats or explores. `npm test` does what finds a mistake soon; `npm run test:nightly`
 * sets `CHARTPILOT_TESTS=full` and does the same at length.
 */
export const isFullRun = process.env.CHARTPILOT_TESTS === 'full';

export function sized<Size>(size: { readonly short: Size; readonly full: Size }): Size {
  return isFullRun ? size.full : size.short;
}
