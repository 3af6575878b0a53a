/**
 * A parent exits at the request of its child when the parent-shutdown time has passed since the child became live. The probe detects a live child
 * with a delay, of which `unseenMs` is the upper bound.
 */

interface ParentShutdown {
  parentShutdownMs: number;
  unseenMs: number;
}

/** Envoy's clock differs from the agent's, and timers of both are late on a busy host. */
const toleranceMs = ({ parentShutdownMs }: ParentShutdown): number => Math.max(1_000, parentShutdownMs / 10);

/** Envoy removes its SIGUSR1 handler some milliseconds before it exits. A SIGUSR1 in this time terminates Envoy, so the exit code is not 0. */
export const hasShutDown = ({ code, signal }: { code: number | null; signal: string | null }): boolean =>
  code === 0 || signal === 'SIGUSR1';

/** Earliest expected exit of the parent, counted from the detection of the live child. */
export const parentDueMs = (shutdown: ParentShutdown): number =>
  Math.max(0, shutdown.parentShutdownMs - shutdown.unseenMs - toleranceMs(shutdown));
