import type { AnyActorRef } from 'xstate';
import { messageOf } from '../../errors.ts';
import type { RecorderContext } from './record-context.ts';

/** Records each end once: XState reports most ends more than once, and the failure of a root actor not at all. */
export class EndRecords {
  /** Final snapshots that were recorded. Not actors, because an explorer may revive an actor. */
  readonly #endedActors = new WeakSet<object>();
  /** A failure of these root actors causes no further inspection event. */
  readonly #processingRoots = new Set<AnyActorRef>();

  begin(ref: AnyActorRef): void {
    this.#processingRoots.add(ref);
  }

  recordFailures(recording: RecorderContext): void {
    for (const ref of this.#processingRoots) {
      const snapshot = ref.getSnapshot();
      if (snapshot.status === 'error') this.record(recording, ref, snapshot);
    }
  }

  record({ actors, record, data }: RecorderContext, ref: AnyActorRef, snapshot: object): void {
    if (ref._parent === undefined) this.#processingRoots.delete(ref);
    const { status, output, error } = snapshot as { status?: string; output?: unknown; error?: unknown };
    if (status === undefined || status === 'active' || this.#endedActors.has(snapshot)) return;
    this.#endedActors.add(snapshot);
    const { name, stoppedFor } = actors.of(ref);
    record({
      kind: 'stop',
      actor: name,
      status: status as 'done' | 'stopped' | 'error',
      ...(output !== undefined && { output: data(output) }),
      ...(error !== undefined && { error: messageOf(error) }),
      ...(status === 'stopped' && stoppedFor),
      ...(status === 'error' && actors.causeOf(ref)),
    });
  }
}
