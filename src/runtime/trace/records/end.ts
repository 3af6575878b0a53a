import type { AnyActorRef } from 'xstate';
import { messageOf } from '../../errors.ts';
import type { Recording } from './record-context.ts';

/** Records each end once: XState tells of it more than once. */
export class EndRecords {
  /** Final snapshots that were told of, not actors: an explorer lets an actor live again. */
  readonly #ended = new WeakSet<object>();

  record({ actors, record, data }: Recording, ref: AnyActorRef, snapshot: object): void {
    const { status, output, error } = snapshot as { status?: string; output?: unknown; error?: unknown };
    if (status === undefined || status === 'active' || this.#ended.has(snapshot)) return;
    this.#ended.add(snapshot);
    const { name, stoppedFor } = actors.of(ref);
    record({
      kind: 'stop',
      actor: name,
      status: status as 'done' | 'stopped' | 'error',
      ...(output !== undefined && { output: data(output) }),
      ...(error !== undefined && { error: messageOf(error) }),
      ...(status === 'stopped' && stoppedFor),
    });
  }
}
