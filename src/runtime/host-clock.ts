/** All processes of a host share this monotonic clock, so a time is valid in the next program. */
export const hostMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
