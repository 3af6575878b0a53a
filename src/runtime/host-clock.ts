/** Milliseconds of a clock that all processes of a host share, and that nobody sets: a moment of it means the same to the next program. */
export const hostMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
