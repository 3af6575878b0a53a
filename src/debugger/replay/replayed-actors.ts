/** The real machines, with a replacement for every effect. Only the recorded input drives them. */
import {
  type AnyActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyStateMachine,
  createActor,
  type InspectionEvent,
} from 'xstate';
import { relay } from '../../runtime/actors/relay-event.ts';
import { actorName } from '../../runtime/trace/known-actors.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import { isMachine } from '../../runtime/trace/statechart.ts';
import { settleCall } from '../explore/scripted-effect.ts';
import { RecordedTimers } from './recorded-timers.ts';
import { replayedEffect, replayedReducer } from './replayed-effect.ts';

export interface ReplayedActorsOptions {
  /** Roots are created from these machines, and started machines with the same ID are replaced by them. */
  readonly machines: ReadonlyMap<string, AnyStateMachine>;
  /** Whether names are paths, see `TraceHeader`. */
  readonly foreign: boolean;
  readonly recorder: Recorder;
  readonly now: () => number;
  /** The recorded ID of an actor that was spawned without one; XState numbers these per process. */
  readonly idOfUnnamed: () => string | undefined;
  /** Called whenever the environment may have acted while a machine was processing. */
  readonly onMoment: () => void;
  /** `undefined` if the action that the actor executes now did not throw in the recording. */
  readonly failureOf: (actor: string) => Error | undefined;
}

export class ReplayedActors {
  readonly #options: ReplayedActorsOptions;
  readonly #timers: RecordedTimers;
  readonly #actors = new Map<string, AnyActorRef>();
  readonly #effects = new WeakSet<AnyActorRef>();
  readonly #startedEffects = new WeakSet<AnyActorRef>();
  readonly #stoppingActors = new WeakSet<AnyActorRef>();
  /** Events for roots that have not been started are queued. */
  readonly #unstartedRoots = new Set<AnyActorRef>();
  readonly #effect: AnyActorLogic;
  readonly #reducer: AnyActorLogic;

  constructor(options: ReplayedActorsOptions) {
    this.#options = options;
    this.#timers = new RecordedTimers(options.now);
    const effectMoments = {
      onStarted: (effect: AnyActorRef) => {
        this.#startedEffects.add(effect);
        options.onMoment();
      },
      onReached: () => options.onMoment(),
    };
    this.#effect = replayedEffect(effectMoments);
    this.#reducer = replayedReducer(effectMoments);
  }

  find(name: string): AnyActorRef | undefined {
    return this.#actors.get(name);
  }

  isEffect(actor: AnyActorRef): boolean {
    return this.#effects.has(actor);
  }

  hasStarted(effect: AnyActorRef): boolean {
    return this.#startedEffects.has(effect);
  }

  /** A root without a machine is an effect and starts immediately. */
  createRoot(id: string, machine: AnyStateMachine | undefined, input: unknown): void {
    const root = createActor(machine ?? this.#effect, {
      id,
      input,
      inspect: (event) => this.#inspect(event),
      logger: () => {},
    }) as AnyActorRef;
    // An error of a machine is recorded as its end; the replay continues.
    root.subscribe({ error: () => {} });
    this.#timers.replaceScheduler(root.system);
    if (machine === undefined) root.start();
    else this.#unstartedRoots.add(root);
  }

  unstartedRootOf(name: string): AnyActorRef | undefined {
    if (this.#unstartedRoots.size === 0) return undefined;
    let actor = this.#actors.get(name);
    while (actor?._parent !== undefined) actor = actor._parent;
    return actor !== undefined && this.#unstartedRoots.has(actor) ? actor : undefined;
  }

  startRoot(root: AnyActorRef): void {
    this.#unstartedRoots.delete(root);
    root.start();
  }

  stopRoot(root: AnyActorRef): void {
    if (this.#stoppingActors.has(root)) return;
    this.#stoppingActors.add(root);
    (root as AnyActorRef & { stop(): void }).stop();
  }

  elapse(actor: AnyActorRef, timer: string): boolean {
    return this.#timers.elapse(actor, timer);
  }

  deliverDelayed(from: AnyActorRef, to: AnyActorRef, type: string): boolean {
    return this.#timers.deliver(from, to, type);
  }

  /** `from` may be an actor that is not in the trace. */
  deliver(from: string, to: AnyActorRef, event: AnyEventObject): void {
    relay(from === 'outside' ? undefined : (this.#actors.get(from) ?? this.#actorNotStarted(from)), to, event);
  }

  settle(effect: AnyActorRef, result: { value: unknown } | { error: unknown }): void {
    settleCall(effect, result as { value: unknown } | { error: Error });
  }

  /** The actor is only recorded as a sender. */
  #actorNotStarted(name: string): AnyActorRef {
    const actor = createActor(this.#effect, { id: name }) as AnyActorRef;
    this.#actors.set(name, actor);
    this.#effects.add(actor);
    this.#startedEffects.add(actor);
    return actor;
  }

  #inspect(event: InspectionEvent): void {
    if (event.type === '@xstate.actor') this.#adopt(event.actorRef as AdoptedActor);
    this.#options.recorder.inspect(event);
    // Observers of the actor have received its new state.
    if (event.type === '@xstate.snapshot') this.#options.onMoment();
  }

  /** XState calls this before the actor creates its first state, when its logic can still be replaced. */
  #adopt(actor: AdoptedActor): void {
    const { logic } = actor;
    if (actor.id === actor.sessionId) actor.id = this.#options.idOfUnnamed() ?? actor.id;
    if (isMachine(logic)) {
      actor.logic = this.#options.machines.get(logic.id) ?? logic;
      this.#muteActor(actor);
    } else {
      actor.logic = 'start' in logic ? this.#effect : this.#reducer;
      // The recording contains the snapshots that the actor reported.
      actor._syncSnapshot = false;
      this.#effects.add(actor);
    }
    this.#actors.set(actorName(actor, this.#options.foreign), actor);
  }

  /** Actions that are plain functions are effects: they are not executed. An action that threw throws the recorded error. */
  #muteActor(actor: AdoptedActor): void {
    const { _actorScope: scope } = actor;
    const execute = scope.actionExecutor;
    const exec = (): void => {
      this.#options.onMoment();
      const failure = this.#options.failureOf(actorName(actor, this.#options.foreign));
      if (failure !== undefined) throw failure;
    };
    scope.actionExecutor = (action) => execute(action.type.startsWith('xstate.') ? action : { ...action, exec });
  }
}

type AdoptedActor = Omit<AnyActorRef, 'id'> & {
  id: string;
  logic: AnyActorLogic;
  _syncSnapshot: boolean;
  _actorScope: { actionExecutor: (action: { type: string; exec?: () => void }) => void };
};
