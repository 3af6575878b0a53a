/** What a recorder knows of the actors that it records. */
import type { AnyActorRef, AnyStateMachine, StateValue } from 'xstate';
import { isMachine } from './statechart.ts';

/** One actor. */
export interface KnownActor {
  readonly name: string;
  readonly machine: AnyStateMachine | undefined;
  readonly spawned: number;
  /** It has done what its start led to. */
  begun: boolean;
  /** What its parent stops it for: an actor that is at work ends later. */
  stoppedFor?: Cause & { readonly during?: number };
  state: string;
  value: StateValue | undefined;
  /** As it was when it was recorded last, and what it was made of. */
  context: unknown;
  seen: unknown;
  /** Delivered and not yet done with, in the order of delivery: the first is what the actor is at. */
  readonly inbox: { readonly event: object; readonly seq: number }[];
}

/** The number of the record that something answers; absent where nothing in the trace is its cause. */
export interface Cause {
  readonly cause?: number;
}

export class KnownActors {
  readonly #known = new WeakMap<AnyActorRef, KnownActor>();
  readonly #foreign: boolean;
  /**
   * Root actors of anybody's program, by their names; the program may give two of them one id, or each of its requests a root of its
   * own: whoever nobody else holds any more is let go, with the name.
   */
  readonly #roots = new Map<string, WeakRef<AnyActorRef>>();
  readonly #letGo = new FinalizationRegistry<string>((name) => {
    if (this.#roots.get(name)?.deref() === undefined) this.#roots.delete(name);
  });
  readonly #rootNames = new WeakMap<AnyActorRef, string>();

  /** @param foreign names are paths: in anybody's program an id is unique only below its parent */
  constructor(foreign = false) {
    this.#foreign = foreign;
  }

  nameOf(ref: AnyActorRef): string {
    if (!this.#foreign) return actorName(ref);
    return ref._parent === undefined ? this.#rootName(ref) : `${this.nameOf(ref._parent)}/${ref.id}`;
  }

  /** Two that live at the same time have two names, whatever ids they were given. */
  #rootName(ref: AnyActorRef): string {
    const known = this.#rootNames.get(ref);
    if (known !== undefined) return known;
    let name = ref.id;
    for (let number = 2; this.#isTaken(name); number++) name = `${ref.id} (${number})`;
    this.#roots.set(name, new WeakRef(ref));
    this.#letGo.register(ref, name);
    this.#rootNames.set(ref, name);
    return name;
  }

  #isTaken(name: string): boolean {
    const other = this.#roots.get(name)?.deref();
    return other !== undefined && other.getSnapshot().status === 'active';
  }

  /** @param spawned the number of its record; 0 where it was not recorded */
  add(ref: AnyActorRef, spawned: number): KnownActor {
    const made: KnownActor = {
      name: this.nameOf(ref),
      machine: machineOf(ref),
      spawned,
      begun: false,
      state: '',
      value: undefined,
      context: undefined,
      seen: undefined,
      inbox: [],
    };
    this.#known.set(ref, made);
    return made;
  }

  of(ref: AnyActorRef): KnownActor {
    return this.#known.get(ref) ?? this.add(ref, 0);
  }

  /** What a chart is at: the answer to it is recorded with its number. An effect does what it does in its own time. */
  causeOf(ref: AnyActorRef | undefined): Cause {
    const sender = ref === undefined ? undefined : this.#known.get(ref);
    if (sender?.machine === undefined) return {};
    // At rest it does nothing; what it had sent with a delay has no cause in the trace.
    const cause = sender.inbox[0]?.seq ?? (sender.begun ? 0 : sender.spawned);
    return cause === 0 ? {} : { cause };
  }
}

/** Forgets an event that an actor has reacted to, and those before it that it will never get to. */
export function doneWith(actor: KnownActor, event: object): void {
  actor.begun = true;
  const at = actor.inbox.findIndex((delivered) => delivered.event === event);
  if (at >= 0) actor.inbox.splice(0, at + 1);
}

/**
 * An actor's stable name. A machine's actor is known by its id (`supervisor`, `epoch-3`, `ads-connection-17`); an effect
 * by its parent's name and its own (`epoch-3/process`). XState's session id counts per process and is never used.
 *
 * @param foreign a machine's actor, too, is known by its parent's name and its own
 */
export function actorName(ref: AnyActorRef, foreign = false): string {
  const parent = ref._parent;
  if (parent === undefined || (!foreign && machineOf(ref) !== undefined)) return ref.id;
  return `${actorName(parent, foreign)}/${ref.id}`;
}

export function machineOf(ref: AnyActorRef): AnyStateMachine | undefined {
  const { logic } = ref as AnyActorRef & { logic?: unknown };
  return isMachine(logic) ? logic : undefined;
}
