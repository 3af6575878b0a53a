/**
 * An actor system whose time is a {@link Zone} and that can be restored to an earlier state in place. It relies on internals of XState 5 actors: an
 * immutable snapshot, a processing status, and the registration with the system.
 */
import { type AnyActorLogic, type AnyActorRef, type AnyEventObject, createActor, type InspectionEvent } from 'xstate';
import { type DeadlineKind, Zone } from './zone.ts';

/** Fields of an XState actor that are `@internal` in its types. */
interface ActorInternals {
  _snapshot: unknown;
  _processingStatus: number;
  readonly sessionId: string;
  readonly systemId: string | undefined;
  readonly observers: ReadonlySet<unknown>;
  /** Replaced by a new mailbox, which is not started, when the actor ends. */
  readonly mailbox: { start(): void };
}

interface SystemInternals {
  _register(sessionId: string, actor: AnyActorRef): void;
  _unregister(actor: AnyActorRef): void;
  _set(systemId: string, actor: AnyActorRef): void;
  _relay(source: AnyActorRef, target: AnyActorRef, event: AnyEventObject): void;
}

interface Timer {
  readonly source: AnyActorRef;
  readonly target: AnyActorRef;
  readonly event: AnyEventObject;
  /** The ID that XState assigns, unique within its source. */
  readonly id: string;
}

const internalsOf = (actor: AnyActorRef): ActorInternals => actor as unknown as ActorInternals;
const systemOf = (actor: AnyActorRef): SystemInternals => actor.system as unknown as SystemInternals;

export interface SymbolicRootOptions {
  readonly id: string;
  readonly input: unknown;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
  /** Called before the root starts: its effects may look up their world by the actor system. */
  readonly created?: (root: AnyActorRef) => void;
  readonly onEvent?: (event: AnyEventObject) => void;
  /** Timers that never fire, by name: `epoch-1.notice`. */
  readonly isSilenced?: (timer: string) => boolean;
}

export interface ActorHost {
  start(logic: AnyActorLogic, options: SymbolicRootOptions): AnyActorRef;
  removeRoot(root: AnyActorRef): void;
}

export function onChartFailure(root: AnyActorRef, onFailure: (failure: string) => void): void {
  const system = systemOf(root);
  const relay = system._relay;
  system._relay = (source, target, event) => {
    if (event.type.startsWith('xstate.error.actor.') && isMachine(source)) onFailure(failureOf(source, event.error));
    relay(source, target, event);
  };
  onRootFailure(root, onFailure);
}

export function observeEvents(root: AnyActorRef, onEvent: (event: AnyEventObject) => void): void {
  const system = systemOf(root);
  const relay = system._relay;
  system._relay = (source, target, event) => {
    if (target === root) onEvent(event);
    relay(source, target, event);
  };
}

function onRootFailure(root: AnyActorRef, onFailure: (failure: string) => void): void {
  root.subscribe({ error: (error: unknown) => onFailure(failureOf(root, error)) });
}

const failureOf = (actor: AnyActorRef, error: unknown): string =>
  `${actor.id}: ${error instanceof Error ? error.message : String(error)}`;

export class SymbolicSystem implements ActorHost {
  #zone = Zone.empty;
  #timers: ReadonlyMap<string, Timer> = new Map();
  #roots: readonly AnyActorRef[] = [];
  #isSilenced: (timer: string) => boolean = () => false;
  #retainedActors: ReadonlySet<string> = new Set();
  #failures: readonly string[] = [];

  /** All roots share one time. */
  start(logic: AnyActorLogic, { id, input, inspect, created, onEvent, isSilenced }: SymbolicRootOptions): AnyActorRef {
    this.#isSilenced = isSilenced ?? this.#isSilenced;
    const root = createActor(logic, { id, input, ...(inspect !== undefined && { inspect }) }) as AnyActorRef;
    const scheduler = root.system.scheduler;
    scheduler.schedule = (source, target, event, delay, timer) => this.#schedule(source, target, event, delay, timer);
    scheduler.cancel = (source, timer) => this.#cancel(source, timer);
    scheduler.cancelAll = (source) => {
      for (const [name, timer] of this.#timers) if (timer.source === source) this.#dropTimer(name);
    };
    onChartFailure(root, this.#fail);
    if (onEvent !== undefined) observeEvents(root, onEvent);
    this.#roots = [...this.#roots, root];
    created?.(root);
    root.start();
    return root;
  }

  removeRoot(root: AnyActorRef): void {
    this.#roots = this.#roots.filter((other) => other !== root);
  }

  /** The root receives no more events, and its effects are not stopped. */
  kill(root: AnyActorRef): void {
    for (const actor of [...withDescendants(root)].toReversed()) retire(actor);
    for (const [name, { source }] of this.#timers) {
      if (source.system !== root.system) continue;
      this.#timers = withoutTimer(this.#timers, name);
      this.#zone = this.#zone.withKind(name, 'mark');
    }
    this.removeRoot(root);
  }

  forgetKilled(names: readonly string[]): void {
    for (const name of names) if (!this.#timers.has(name)) this.#zone = this.#zone.cancel(name);
  }

  keepCancelled(names: readonly string[]): void {
    this.#retainedActors = new Set(names);
  }

  timersOf(root: AnyActorRef): string[] {
    return [...this.#timers].flatMap(([name, { source }]) => (source.system === root.system ? [name] : []));
  }

  get zone(): Zone {
    return this.#zone;
  }

  get failures(): readonly string[] {
    return this.#failures;
  }

  /** The deadline belongs to the world, not to an actor. */
  arm(name: string, ms: number, kind: Exclude<DeadlineKind, 'exact'>): void {
    this.#zone = this.#zone.arm(name, ms, kind);
  }

  disarm(name: string): void {
    this.#zone = this.#zone.cancel(name);
  }

  rename(name: string, to: string): void {
    this.#zone = this.#zone.withRenamed(name, to);
  }

  elapse(): void {
    this.#zone = this.#zone.elapse();
  }

  fire(name: string): void {
    const timer = this.#timers.get(name);
    if (timer === undefined) throw new Error(`no timer is named '${name}'`);
    this.#zone = this.#zone.fire(name);
    this.#timers = withoutTimer(this.#timers, name);
    systemOf(timer.target)._relay(timer.source, timer.target, timer.event);
  }

  /** The system must be idle. */
  save(): () => void {
    const zone = this.#zone;
    const timers = this.#timers;
    const roots = this.#roots;
    const failures = this.#failures;
    const actorNotes = this.#notesOfActors();
    return () => {
      this.#restoreActor(actorNotes);
      this.#zone = zone;
      this.#timers = timers;
      this.#roots = roots;
      this.#failures = failures;
    };
  }

  /** Parents first. */
  *actors(): Generator<AnyActorRef> {
    for (const root of this.#roots) yield* withDescendants(root);
  }

  #notesOfActors(): ReadonlyMap<AnyActorRef, Note> {
    const actorNotes = new Map<AnyActorRef, Note>();
    for (const actor of this.actors()) {
      const { _snapshot: snapshot, _processingStatus: status } = internalsOf(actor);
      actorNotes.set(actor, { snapshot, status });
    }
    return actorNotes;
  }

  #restoreActor(actorNotes: ReadonlyMap<AnyActorRef, Note>): void {
    for (const actor of this.actors()) if (!actorNotes.has(actor)) retire(actor);
    for (const [actor, { snapshot, status }] of actorNotes) {
      const internals = internalsOf(actor);
      const isRevived = internals._processingStatus !== status;
      internals._snapshot = snapshot;
      if (!isRevived) continue;
      internals._processingStatus = status;
      if (status !== statusRunning) {
        systemOf(actor)._unregister(actor);
        continue;
      }
      // An actor that ended has lost its observers and its mailbox, so both are restored.
      if (actor._parent === undefined && internals.observers.size === 0) onRootFailure(actor, this.#fail);
      internals.mailbox.start();
      const system = systemOf(actor);
      system._register(internals.sessionId, actor);
      if (internals.systemId !== undefined) system._set(internals.systemId, actor);
    }
  }

  readonly #fail = (failure: string): void => {
    this.#failures = [...this.#failures, failure];
  };

  #schedule(source: AnyActorRef, target: AnyActorRef, event: AnyEventObject, delay: number, id = event.type): void {
    const timer = { source, target, event, id };
    const name = this.#nameOf(timer);
    if (this.#isSilenced(name)) return;
    this.#timers = new Map(this.#timers).set(name, timer);
    if (!this.#zone.has(name)) this.#zone = this.#zone.arm(name, delay);
    else if (this.#zone.isOverdue(name)) this.#zone = this.#zone.cancel(name).arm(name, 0);
    else this.#zone = this.#zone.withKind(name, 'exact');
  }

  #cancel(source: AnyActorRef, id: string): void {
    for (const [name, timer] of this.#timers) if (timer.source === source && timer.id === id) this.#dropTimer(name);
  }

  #dropTimer(name: string): void {
    this.#timers = withoutTimer(this.#timers, name);
    this.#zone = this.#retainedActors.has(name) ? this.#zone.withKind(name, 'mark') : this.#zone.cancel(name);
  }

  /** `epoch-1.healthy`: the name of the delay in the machine, if that is unique. */
  #nameOf({ target, event, id }: Timer): string {
    const [, afterPrefix, delay] = event.type.split('.');
    const shortName = `${target.id}.${afterPrefix === 'after' ? delay : event.type}`;
    return this.#timers.has(shortName) ? `${target.id}.${id}` : shortName;
  }
}

interface Note {
  readonly snapshot: unknown;
  readonly status: number;
}

const statusRunning = 1;
const statusStopped = 2;

/** Stops an actor that does not exist in the restored state, so that it receives no events. */
function retire(actor: AnyActorRef): void {
  const internals = internalsOf(actor);
  if (internals._processingStatus !== statusStopped) systemOf(actor)._unregister(actor);
  internals._processingStatus = statusStopped;
  internals._snapshot = { ...(internals._snapshot as object), status: 'stopped' };
}

function isMachine(actor: AnyActorRef): boolean {
  return 'machine' in actor.getSnapshot();
}

function* withDescendants(actor: AnyActorRef): Generator<AnyActorRef> {
  yield actor;
  const { children } = actor.getSnapshot() as { children?: Record<string, AnyActorRef> };
  if (children === undefined) return;
  for (const id in children) yield* withDescendants(children[id]!);
}

function withoutTimer(timers: ReadonlyMap<string, Timer>, name: string): ReadonlyMap<string, Timer> {
  const remainingTimers = new Map(timers);
  remainingTimers.delete(name);
  return remainingTimers;
}
