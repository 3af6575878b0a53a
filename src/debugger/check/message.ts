import type { ActorSnapshot, TraceRecord } from '../../runtime/trace/trace.ts';

export interface Message {
  seq: number;
  /** Monotonic milliseconds. */
  t: number;
  from: string;
  to: string;
  /** The type of an event, `spawn`, `done`, or `timer` and the name of the delay. */
  type: string;
}

/** The environment of the actor system, which is also the parent of root actors. */
export const outsideActor = 'outside';

/** The parent of an actor whose spawn is not in the trace. This name matches any actor. */
export const unknownParent = '?';

export class MessageReader {
  readonly #parents = new Map<string, string>();

  constructor(liveActors: readonly ActorSnapshot[] = []) {
    for (const { actor, parent = outsideActor } of liveActors) this.#parents.set(actor, parent);
  }

  save(): () => void {
    const parents = [...this.#parents];
    return () => {
      this.#parents.clear();
      for (const [actor, parent] of parents) this.#parents.set(actor, parent);
    };
  }

  /** @returns `undefined` for transitions, effects, and ends without success */
  read(record: TraceRecord): Message | undefined {
    const { seq, t } = record;
    switch (record.kind) {
      case 'event':
        return { seq, t, from: record.from, to: record.to, type: record.event.type };
      case 'timer':
        return { seq, t, from: record.actor, to: record.actor, type: `timer ${record.timer}` };
      case 'spawn': {
        const parent = record.parent ?? outsideActor;
        this.#parents.set(record.actor, parent);
        return { seq, t, from: parent, to: record.actor, type: 'spawn' };
      }
      case 'stop': {
        const parent = this.#parents.get(record.actor) ?? parentActorOf(record.actor);
        this.#parents.delete(record.actor);
        return record.status === 'done' ? { seq, t, from: record.actor, to: parent, type: 'done' } : undefined;
      }
      default:
        return undefined;
    }
  }
}

/** The name of an effect contains its parent; that of a machine does not. */
function parentActorOf(actor: string): string {
  const slash = actor.lastIndexOf('/');
  return slash === -1 ? unknownParent : actor.slice(0, slash);
}
