import type { AnyActorRef, AnyStateMachine, StateValue } from 'xstate';
import { isMachine } from './statechart.ts';

export interface KnownActor {
  readonly name: string;
  readonly machine: AnyStateMachine | undefined;
  readonly spawnSeq: number;
  hasStarted: boolean;
  /** Why the parent stops the actor; an actor that is processing an event ends later. */
  stoppedFor?: Cause & { readonly during?: number };
  state: string;
  value: StateValue | undefined;
  context: unknown;
  recordedContextSource: unknown;
  /** Delivered events that are not handled yet, in order of delivery; the actor is processing the first. */
  readonly inbox: { readonly event: object; readonly seq: number }[];
}

/** Number of the record that caused another one; absent if the trace contains no cause. */
export interface Cause {
  readonly cause?: number;
}

export class KnownActors {
  readonly #knownActors = new WeakMap<AnyActorRef, KnownActor>();
  readonly #isForeign: boolean;
  /**
   * A foreign program may have two roots with the same ID, or create a root for each request, so an actor without other references is released, and
   * its name with it.
   */
  readonly #roots = new Map<string, WeakRef<AnyActorRef>>();
  readonly #rootRegistry = new FinalizationRegistry<string>((name) => {
    if (this.#roots.get(name)?.deref() === undefined) this.#roots.delete(name);
  });
  readonly #rootNames = new WeakMap<AnyActorRef, string>();

  /** @param isForeign names are paths, because in a foreign program an ID is unique only below its parent */
  constructor(isForeign = false) {
    this.#isForeign = isForeign;
  }

  nameOf(ref: AnyActorRef): string {
    if (!this.#isForeign) return actorName(ref);
    return ref._parent === undefined ? this.#rootName(ref) : `${this.nameOf(ref._parent)}/${ref.id}`;
  }

  /** Actors that live at the same time have different names, even with equal IDs. */
  #rootName(ref: AnyActorRef): string {
    const rootName = this.#rootNames.get(ref);
    if (rootName !== undefined) return rootName;
    let name = ref.id;
    for (let number = 2; this.#isNameInUse(name); number++) name = `${ref.id} (${number})`;
    this.#roots.set(name, new WeakRef(ref));
    this.#rootRegistry.register(ref, name);
    this.#rootNames.set(ref, name);
    return name;
  }

  #isNameInUse(name: string): boolean {
    const existingActor = this.#roots.get(name)?.deref();
    return existingActor !== undefined && existingActor.getSnapshot().status === 'active';
  }

  /** @param spawnSeq number of its spawn record; 0 if that was not recorded */
  add(ref: AnyActorRef, spawnSeq: number): KnownActor {
    const knownActor: KnownActor = {
      name: this.nameOf(ref),
      machine: machineOf(ref),
      spawnSeq: spawnSeq,
      hasStarted: false,
      state: '',
      value: undefined,
      context: undefined,
      recordedContextSource: undefined,
      inbox: [],
    };
    this.#knownActors.set(ref, knownActor);
    return knownActor;
  }

  of(ref: AnyActorRef): KnownActor {
    return this.#knownActors.get(ref) ?? this.add(ref, 0);
  }

  /** The record that a chart is processing, which causes its outputs. An effect runs asynchronously and has no cause. */
  causeOf(ref: AnyActorRef | undefined): Cause {
    const sender = ref === undefined ? undefined : this.#knownActors.get(ref);
    if (sender?.machine === undefined) return {};
    // An idle actor sends no events; an event that it sent with a delay has no cause in the trace.
    const cause = sender.inbox[0]?.seq ?? (sender.hasStarted ? 0 : sender.spawnSeq);
    return cause === 0 ? {} : { cause };
  }
}

/** Also removes earlier events, which the actor will never handle. */
export function removeHandledEvent(actor: KnownActor, event: object): void {
  actor.hasStarted = true;
  const deliveredIndex = actor.inbox.findIndex((inboxEntry) => inboxEntry.event === event);
  if (deliveredIndex >= 0) actor.inbox.splice(0, deliveredIndex + 1);
}

/**
 * A machine's actor is named by its id (`supervisor`, `epoch-3`, `ads-connection-17`); an effect by its parent's name and its own
 * (`epoch-3/process`).
 * @param isForeign a machine's actor, too, is named by its parent's name and its own
 */
export function actorName(ref: AnyActorRef, isForeign = false): string {
  const parent = ref._parent;
  if (parent === undefined || (!isForeign && machineOf(ref) !== undefined)) return ref.id;
  return `${actorName(parent, isForeign)}/${ref.id}`;
}

export function machineOf(ref: AnyActorRef): AnyStateMachine | undefined {
  const { logic } = ref as AnyActorRef & { logic?: unknown };
  return isMachine(logic) ? logic : undefined;
}
