/**
 * When a parent exits at the request of its child: after the parent-shutdown time, which starts when the child is live. The probe detects
 * that later; `unseenMs` bounds the difference. Pure functions.
 */

interface ParentShutdown {
  parentShutdownMs: number;
  /** Upper bound of the time that the child was live before the probe detected it. */
  unseenMs: number;
}

/** Envoy's clock differs from the agent's, and both are late on a busy host. */
const toleranceMs = ({ parentShutdownMs }: ParentShutdown): number => Math.max(1_000, parentShutdownMs / 10);

/**
 * Whether Envoy shut down by itself, its child or a signal. Envoy removes its SIGUSR1 handler some milliseconds before it exits: then SIGUSR1
 * terminates it, instead of exit code 0.
 */
export const hasShutDown = ({ code, signal }: { code: number | null; signal: string | null }): boolean =>
  code === 0 || signal === 'SIGUSR1';

/** Earliest expected exit of a parent, from the detection of its live child. */
export const parentDueMs = (shutdown: ParentShutdown): number =>
  Math.max(0, shutdown.parentShutdownMs - shutdown.unseenMs - toleranceMs(shutdown));
