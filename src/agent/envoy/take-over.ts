/**
 * A child that becomes live and exits between two probes leaves a parent with closed listeners, and nothing else would report that no Envoy serves.
 */
import type { AdminConnector } from '../admin/admin-client.ts';
import { isMarkedInitializing } from './base-ids/shared-memory.ts';

export interface TakeoverEnvironment {
  readonly adminAt: AdminConnector;
  readonly sharedMemoryDir?: string;
  /** Whether the parent of an adopted child responded before the adoption, which can no longer be checked. */
  readonly hadParent?: boolean;
}

/** A serving Envoy responds in a few milliseconds, or later on a busy host. A child needs more time to attach. */
const firstProbeLimitMs = 2_000;
/** The check after the exit delays the report of the exit if the parent hangs. */
const exitProbeLimitMs = 500;

/**
 * Called right after the process of an epoch was spawned.
 *
 * @returns a function that, called after the process exited, reports whether the epoch had taken over. An attaching child sets the mark and closes
 * the parent's admin interface; the mark is cleared when the epoch becomes live (docs/hot-restart-reference.md, facts 1 and 2).
 */
export function watchTakeOver(
  { adminAt, sharedMemoryDir, hadParent = false }: TakeoverEnvironment,
  { epoch, baseId, adminPort }: { readonly epoch: number; readonly baseId: number; readonly adminPort: number },
): () => Promise<boolean> {
  if (epoch === 0) return () => Promise.resolve(false);
  const admin = adminAt(adminPort);
  const firstState = admin.state(firstProbeLimitMs);
  return async () => {
    if (isMarkedInitializing(baseId, sharedMemoryDir) !== false || !(hadParent || (await firstState).responded))
      return false;
    return (await admin.isClosed(exitProbeLimitMs)) && isMarkedInitializing(baseId, sharedMemoryDir) === false;
  };
}
