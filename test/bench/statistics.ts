/**
 * Quantile by nearest rank.
 *
 * @param quantile from 0 to 1
 * @returns 0 without values
 */
export function quantileOf(values: readonly number[], quantile: number): number {
  const rank = Math.max(1, Math.ceil(values.length * quantile));
  return values.toSorted((a, b) => a - b)[rank - 1] ?? 0;
}

/** The lower median. */
export const medianOf = (values: readonly number[]): number => quantileOf(values, 0.5);
