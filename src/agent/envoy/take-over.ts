/**
 * Whether a child that is gone had taken over from its parent. A probe looks every now and then: a child that becomes live
 * and dies between two looks leaves a parent that has closed its listeners, and nobody knows that nobody serves.
 */
import type { AdminConnector } from '../admin/admin-client.ts';
import { isMarkedInitializing } from './base-ids/shared-memory.ts';

export interface TakeOverEnvironment {
  readonly adminAt: AdminConnector;
  readonly sharedMemoryDir?: string;
  /** The child had a parent that answered: known to an agent that came later, and can ask no more. */
  readonly hadParent?: boolean;
}

/** An Envoy that serves answers in a few milliseconds, on a busy machine later; a child needs longer than that to attach. */
const askFirstLimitMs = 2_000;
/** Once more when it is gone: its exit waits for the answer, also that of a parent that hangs. */
const askLimitMs = 500;

/**
 * Called directly after the process of an epoch was spawned.
 *
 * @returns a function that reports, after the process has exited, whether the epoch had taken over: the parent's admin interface
 * responded before and no longer does (a child attaches, sets the mark, and closes it), and the mark is cleared, which happens
 * when the epoch becomes live (spec/envoy-hot-restart.md facts 1 and 2). `false` if this is unknown.
 */
export function watchTakeOver(
  { adminAt, sharedMemoryDir, hadParent = false }: TakeOverEnvironment,
  { epoch, baseId, adminPort }: { readonly epoch: number; readonly baseId: number; readonly adminPort: number },
): () => Promise<boolean> {
  if (epoch === 0) return () => Promise.resolve(false);
  const admin = adminAt(adminPort);
  const before = admin.state(askFirstLimitMs);
  return async () => {
    if (isMarkedInitializing(baseId, sharedMemoryDir) !== false || !(hadParent || (await before).responded))
      return false;
    return (await admin.isClosed(askLimitMs)) && isMarkedInitializing(baseId, sharedMemoryDir) === false;
  };
}
