/**
 * When a parent may leave because its child has told it to: the parent-shutdown time after the child was live, which is seen later than it
 * happens. How much later the probe knows: no longer ago than its last look that found the child not live. Pure.
 */

interface ParentShutdown {
  parentShutdownMs: number;
  /** The child may have been live for so long when that was seen. */
  unseenMs: number;
}

/** Envoy's clock is not ours, and it is a busy host on which either is late. */
const toleranceMs = ({ parentShutdownMs }: ParentShutdown): number => Math.max(1_000, parentShutdownMs / 10);

/** How long after its child was seen to be live a parent's exit is on time at the earliest. */
export const parentDueMs = (shutdown: ParentShutdown): number =>
  Math.max(0, shutdown.parentShutdownMs - shutdown.unseenMs - toleranceMs(shutdown));
