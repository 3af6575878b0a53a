/** All processes of a host share this monotonic clock, so times of different programs are comparable. */
export const hostMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
