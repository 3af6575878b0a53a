/**
 * Milliseconds of a monotonic clock that all processes of a host share, so that a time is valid in the next program.
 */
export const hostMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
