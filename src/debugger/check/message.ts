import type { ActorSnapshot, TraceRecord } from '../../runtime/trace/trace.ts';

/** A trace's record as sequence diagrams see it: something that passed from one actor to another. */
export interface Message {
  seq: number;
  /** Monotonic milliseconds. */
  t: number;
  from: string;
  to: string;
  /** An event's type, `spawn`, `done`, or `timer` and the delay's name. */
  type: string;
}

/** The world outside the actor system; also the parent of its roots. */
export const outside = 'outside';

/** The parent of an actor whose spawn is not in the trace: it may be anyone. */
export const unknownParent = '?';

/** Reads messages out of the records of one trace, in order: the end of an actor goes to the parent that its spawn named. */
export class MessageReader {
  readonly #parents = new Map<string, string>();

  /** @param living actors before the first record, as a header tells them. */
  constructor(living: readonly ActorSnapshot[] = []) {
    for (const { actor, parent = outside } of living) this.#parents.set(actor, parent);
  }

  /** Takes note of who is whose parent; the function that is returned brings that back. */
  save(): () => void {
    const parents = [...this.#parents];
    return () => {
      this.#parents.clear();
      for (const [actor, parent] of parents) this.#parents.set(actor, parent);
    };
  }

  /** The message in a record; undefined for records that are none (transitions, effects, ends without success). */
  read(record: TraceRecord): Message | undefined {
    const { seq, t } = record;
    switch (record.kind) {
      case 'event':
        return { seq, t, from: record.from, to: record.to, type: record.event.type };
      case 'timer':
        return { seq, t, from: record.actor, to: record.actor, type: `timer ${record.timer}` };
      case 'spawn': {
        const parent = record.parent ?? outside;
        this.#parents.set(record.actor, parent);
        return { seq, t, from: parent, to: record.actor, type: 'spawn' };
      }
      case 'stop': {
        const parent = this.#parents.get(record.actor) ?? parentInName(record.actor);
        this.#parents.delete(record.actor);
        return record.status === 'done' ? { seq, t, from: record.actor, to: parent, type: 'done' } : undefined;
      }
      default:
        return undefined;
    }
  }
}

/** An effect is named below its parent; a machine's name does not tell. */
function parentInName(actor: string): string {
  const slash = actor.lastIndexOf('/');
  return slash === -1 ? unknownParent : actor.slice(0, slash);
}
