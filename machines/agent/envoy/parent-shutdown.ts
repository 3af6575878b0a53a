/**
 * How a parent leaves because its child has told it to, and when: the parent-shutdown time after the child was live, which is seen later than it
 * happens. How much later the probe knows: no longer ago than its last look that found the child not live. Pure.
 */

interface ParentShutdown {
  parentShutdownMs: number;
  /** The child may have been live for so long when that was seen. */
  unseenMs: number;
}

/** Envoy's clock is not ours, and it is a busy host on which either is late. */
const toleranceMs = ({ parentShutdownMs }: ParentShutdown): number => Math.max(1_000, parentShutdownMs / 10);

/**
 * Whether an Envoy has shut down in order: by itself, or because its child or a signal told it to. Its handler of SIGUSR1 is removed when its
 * main loop ends, some milliseconds before its exit: a SIGUSR1 of that time ends it in place of code 0.
 */
export const hasShutDown = ({ code, signal }: { code: number | null; signal: string | null }): boolean =>
  code === 0 || signal === 'SIGUSR1';

/** How long after its child was seen to be live a parent's exit is on time at the earliest. */
export const parentDueMs = (shutdown: ParentShutdown): number =>
  Math.max(0, shutdown.parentShutdownMs - shutdown.unseenMs - toleranceMs(shutdown));
