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
 * Called when the process of an epoch has been spawned, before it can have done anything.
 *
 * @returns what tells, once the process is gone, whether it had taken over. It had when its parent's admin interface answered
 * before and answers no more (a child attaches, sets the mark, and closes it), and the mark is cleared (which is done at the
 * moment of being live, spec/envoy-hot-restart.md facts 1 and 2). False where nobody can tell.
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
