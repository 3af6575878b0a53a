/**
 * Starts statecharts and records what they do. The same function serves production and tests: a test hands in a
 * virtual clock and a sink that it reads.
 */
import {
  type Actor,
  type ActorOptions,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyStateMachine,
  type AnyTransitionDefinition,
  createActor,
  type InspectionEvent,
  type SnapshotFrom,
  type StateValue,
} from 'xstate';
import { messageOf } from '../errors.ts';
import { recordRedactor } from '../trace/redact.ts';
import { secretsIn } from '../trace/secret-texts.ts';
import { isMachine, machinesOf, statechartOf, timerName, transitionNumbers } from '../trace/statechart.ts';
import {
  type TraceBody,
  type TracedEvent,
  type TraceHeader,
  type TraceLevel,
  type TraceLine,
  type TraceRecord,
  type TraceSink,
  traceVersion,
} from '../trace/trace.ts';
import { changesOf } from '../trace/trace-state.ts';

/** Milliseconds since an origin that never moves backwards. */
export type MonotonicClock = () => number;

export interface Recorder {
  /** Goes into `createActor(..., { inspect })` of every root actor of the program. */
  inspect: (event: InspectionEvent) => void;
  /** For what no inspection event tells: a process table's sweep, a dropped connection. */
  record: (body: TraceBody) => void;
  /** Calls back with every record; returns how to stop that. Observers must not throw. */
  observe: (observer: (record: TraceRecord) => void) => () => void;
  close: () => void;
}

export interface RecorderOptions {
  program: string;
  sinks?: readonly TraceSink[];
  now?: MonotonicClock;
  startedAt?: Date;
  pid?: number;
  /** The machines that run, for the header; those that they start by name come along. */
  machines?: readonly AnyStateMachine[];
  /** `standard` unless said otherwise. */
  level?: TraceLevel;
  /** Types of events that are not recorded, nor the steps that they cause where no state changes. */
  omits?: readonly string[];
  /** Texts that no sink is given; what looks like a secret is left out anyway. */
  secrets?: readonly string[];
}

/**
 * An actor's stable name. A machine's actor is known by its id (`supervisor`, `epoch-3`, `ads-connection-17`); an effect
 * by its parent's name and its own (`epoch-3/process`). XState's session id counts per process and is never used.
 */
export function actorName(ref: AnyActorRef): string {
  const parent = ref._parent;
  return parent === undefined || machineOf(ref) !== undefined ? ref.id : `${actorName(parent)}/${ref.id}`;
}

function machineOf(ref: AnyActorRef): AnyStateMachine | undefined {
  const { logic } = ref as AnyActorRef & { logic?: unknown };
  return isMachine(logic) ? logic : undefined;
}

/** `serving.settled`; the paths of parallel regions joined with ` | `, in the order of the definition. */
export function stateName(value: StateValue | undefined): string {
  return value === undefined ? '' : leavesOf(value).join(' | ');
}

function leavesOf(value: StateValue): string[] {
  if (typeof value === 'string') return [value];
  return Object.entries(value).flatMap(([state, inner]) => {
    const leaves = inner === undefined ? [] : leavesOf(inner);
    return leaves.length === 0 ? [state] : leaves.map((leaf) => `${state}.${leaf}`);
  });
}

/** What a step changes. */
interface MachineState {
  readonly value?: StateValue;
  readonly context?: unknown;
}

/** What the recorder knows of an actor. */
interface Known {
  readonly name: string;
  readonly machine: AnyStateMachine | undefined;
  readonly spawned: number;
  /** It has done what its start led to. */
  begun: boolean;
  /** What its parent stops it for: an actor that is at work ends later. */
  stoppedFor?: { readonly cause?: number; readonly during?: number };
  state: string;
  value: StateValue | undefined;
  /** As it was when it was recorded last. */
  context: unknown;
  /** Delivered and not yet done with, in the order of delivery: the first is what the actor is at. */
  readonly inbox: { readonly event: object; readonly seq: number }[];
}

/** Turns XState's inspection events into trace records. */
export function createRecorder(options: RecorderOptions): Recorder {
  const { machines = [], level = 'standard', startedAt = new Date() } = options;
  const omitted: ReadonlySet<string> = new Set(options.omits);
  const sinks = options.sinks ?? [];
  const now = options.now ?? monotonic();
  const observers = new Set<(record: TraceRecord) => void>();
  const known = new WeakMap<AnyActorRef, Known>();
  let seq = 0;

  // Observers see what passed; what leaves for a file or a viewer is made safe first.
  const broken = new Set<TraceSink>();
  const writeToSinks = (line: TraceLine): void => {
    for (const sink of sinks) {
      // A trace that breaks is a record less: what is recorded goes on, and so do the other sinks.
      try {
        sink.write(line);
      } catch (error) {
        if (!broken.has(sink)) process.emitWarning(`trace: ${messageOf(error)}`);
        broken.add(sink);
      }
    }
  };
  let redact: ReturnType<typeof recordRedactor> | undefined;
  if (sinks.length > 0) {
    redact = recordRedactor({ full: level === 'full', secrets: options.secrets ?? secretsIn(process.env) });
    // The same for all sinks: by it, the parts of one run are known.
    const header: TraceHeader = {
      kind: 'header',
      version: traceVersion,
      program: options.program,
      pid: options.pid ?? process.pid,
      startedAt: startedAt.toISOString(),
      level,
      machines: machinesOf(...machines).map(statechartOf),
      ...(omitted.size > 0 && { omits: [...omitted] }),
    };
    writeToSinks(header);
  }

  const record = (body: TraceBody): number => {
    const line: TraceRecord = { seq: ++seq, t: Math.round(now() * 1000) / 1000, ...body };
    if (redact !== undefined) {
      writeToSinks(redact(line));
    }
    for (const observer of observers) observer(line);
    return line.seq;
  };

  const know = (ref: AnyActorRef, spawned: number): Known => {
    const made: Known = {
      name: actorName(ref),
      machine: machineOf(ref),
      spawned,
      begun: false,
      state: '',
      value: undefined,
      context: undefined,
      inbox: [],
    };
    known.set(ref, made);
    return made;
  };
  const knownOf = (ref: AnyActorRef): Known => known.get(ref) ?? know(ref, 0);

  /** What a chart is at: the answer to it is recorded with its number. An effect does what it does in its own time. */
  const causeOf = (ref: AnyActorRef | undefined): { cause?: number } => {
    const sender = ref === undefined ? undefined : known.get(ref);
    if (sender?.machine === undefined) return {};
    // At rest it does nothing; what it had sent with a delay has no cause in the trace.
    const cause = sender.inbox[0]?.seq ?? (sender.begun ? 0 : sender.spawned);
    return cause === 0 ? {} : { cause };
  };

  const onSpawn = (ref: AnyActorRef): void => {
    const parent = ref._parent;
    const machine = machineOf(ref);
    const { input } = (ref as AnyActorRef & { options?: { input?: unknown } }).options ?? {};
    const spawned = record({
      kind: 'spawn',
      actor: actorName(ref),
      ...(parent !== undefined && { parent: actorName(parent) }),
      ...(machine !== undefined && { machine: machine.id }),
      ...(input !== undefined && { input }),
      ...causeOf(parent),
    });
    know(ref, spawned);
  };

  const onEvent = (to: AnyActorRef, from: AnyActorRef | undefined, event: TracedEvent): void => {
    // What a promise tells itself; its parent hears of it by xstate.done.actor.
    if (event.type.startsWith('xstate.promise.')) return;
    const receiver = knownOf(to);
    if (event.type === 'xstate.init') {
      // Its parent may have sent it something before it began; it begins first.
      if (receiver.machine !== undefined) receiver.inbox.unshift({ event, seq: receiver.spawned });
      return;
    }
    if (omitted.has(event.type)) {
      if (receiver.machine !== undefined) receiver.inbox.push({ event, seq: 0 });
      return;
    }
    const timer = timerName(event.type);
    if (timer !== undefined) {
      receiver.inbox.push({ event, seq: record({ kind: 'timer', actor: receiver.name, timer }) });
      return;
    }
    // XState tells of the end of an actor only when its parent has reacted to it: told here, the end comes before that.
    if (from !== undefined && /^xstate\.(done|error)\.actor\./.test(event.type)) onEnd(from, from.getSnapshot());
    const delivered = record({
      kind: 'event',
      from: from === undefined ? 'outside' : knownOf(from).name,
      to: receiver.name,
      event: plain(event),
      ...causeOf(from),
    });
    if (receiver.machine !== undefined) receiver.inbox.push({ event, seq: delivered });
  };

  const onStep = (
    ref: AnyActorRef,
    snapshot: MachineState,
    on: string,
    transitions: readonly AnyTransitionDefinition[],
  ): void => {
    const actor = knownOf(ref);
    if (actor.machine === undefined) return;
    const sameStates = isSameValue(snapshot.value, actor.value);
    if (sameStates && (snapshot.context === actor.context || omitted.has(on)) && transitions.length === 0) return;
    const to = sameStates ? actor.state : stateName(snapshot.value);
    const from = actor.state;
    actor.value = snapshot.value;
    if (to === from && omitted.has(on)) return;
    const change = changesOf(actor.context, snapshot.context);
    const taken = takenNumbers(actor.machine, transitions);
    if (to === from && change.length === 0 && taken.length === 0) return;
    actor.state = to;
    actor.context = snapshot.context;
    const step = {
      actor: actor.name,
      on,
      ...causeOf(ref),
      ...(taken.length > 0 && { taken }),
      ...(change.length > 0 && { change }),
    };
    record(to === from ? { kind: 'step', ...step } : { kind: 'transition', from, to, ...step });
  };

  const onAction = (ref: AnyActorRef, { type, params }: { type: string; params?: unknown }): void => {
    if (!type.startsWith('xstate.')) {
      record({
        kind: 'effect',
        actor: knownOf(ref).name,
        effect: type,
        ...(params !== undefined && { params }),
        ...causeOf(ref),
      });
      return;
    }
    if (type === 'xstate.stopChild' && params !== undefined) onStopOrder(knownOf(params as AnyActorRef), ref);
    if (type !== 'xstate.raise') return;
    const { event, delay } = params as { event: { type: string }; delay?: number };
    const timer = timerName(event.type);
    if (timer === undefined || delay === undefined) return;
    const actor = knownOf(ref);
    // xstate.after.<delay>.<the state's id>
    const stateId = event.type.slice(`xstate.after.${timer}.`.length);
    const state = actor.machine?.getStateNodeById(stateId).path.join('.') ?? '';
    record({ kind: 'timer-started', actor: actor.name, timer, state, ms: delay, ...causeOf(ref) });
  };

  const onStopOrder = (child: Known, by: AnyActorRef): void => {
    const during = child.inbox[0]?.seq ?? 0;
    child.stoppedFor = { ...causeOf(by), ...(during > 0 && { during }) };
  };

  const inspect = (event: InspectionEvent): void => {
    // A throw in here would come out of somebody's actor.send().
    try {
      const ref = event.actorRef as AnyActorRef;
      switch (event.type) {
        case '@xstate.actor':
          onSpawn(ref);
          break;
        case '@xstate.event':
          onEvent(ref, event.sourceRef as AnyActorRef | undefined, event.event as TracedEvent);
          break;
        case '@xstate.microstep':
          onStep(ref, event.snapshot as MachineState, event.event.type, event._transitions);
          break;
        case '@xstate.action':
          onAction(ref, event.action);
          break;
        case '@xstate.snapshot':
          onStep(ref, event.snapshot as MachineState, event.event.type, []);
          doneWith(knownOf(ref), event.event);
          onEnd(ref, event.snapshot);
          break;
      }
    } catch (error) {
      process.emitWarning(`trace: ${messageOf(error)}`);
    }
  };

  /** Final snapshots that were told of, not actors: an explorer lets an actor live again. */
  const ended = new WeakSet<object>();
  const onEnd = (ref: AnyActorRef, snapshot: object): void => {
    const { status, output, error } = snapshot as { status?: string; output?: unknown; error?: unknown };
    if (status === undefined || status === 'active' || ended.has(snapshot)) return;
    ended.add(snapshot);
    record({
      kind: 'stop',
      actor: knownOf(ref).name,
      status: status as 'done' | 'stopped' | 'error',
      ...(output !== undefined && { output }),
      ...(error !== undefined && { error: messageOf(error) }),
      ...(status === 'stopped' && knownOf(ref).stoppedFor),
    });
  };

  return {
    inspect,
    record,
    observe(observer) {
      observers.add(observer);
      return () => observers.delete(observer);
    },
    close() {
      for (const sink of sinks) sink.close();
    },
  };
}

/** XState makes a new value for each step: most are the same. */
function isSameValue(a: StateValue | undefined, b: StateValue | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object') return false;
  // A state has its regions, or one of its states: as many keys, or others.
  for (const state in a) if (!isSameValue(a[state], b[state])) return false;
  return true;
}

/** Transitions that do something: what a chart says that it ignores is none. */
function takenNumbers(machine: AnyStateMachine, transitions: readonly AnyTransitionDefinition[]): number[] {
  if (transitions.length === 0) return [];
  const numbers = transitionNumbers(machine);
  return transitions.flatMap((transition) => {
    if (transition.target === undefined && transition.actions.length === 0) return [];
    return numbers.get(transition) ?? [];
  });
}

/** Forgets an event that an actor has reacted to, and those before it that it will never get to. */
function doneWith(actor: Known, event: object): void {
  actor.begun = true;
  const at = actor.inbox.findIndex((delivered) => delivered.event === event);
  if (at >= 0) actor.inbox.splice(0, at + 1);
}

/** An error in an event is an Error object, which JSON shows as `{}`: keep its message. */
function plain(event: TracedEvent): TracedEvent {
  return event.error instanceof Error ? { ...event, error: event.error.message } : event;
}

function monotonic(): MonotonicClock {
  const origin = performance.now();
  return () => performance.now() - origin;
}

export interface RootOptions<TLogic extends AnyActorLogic> {
  id: string;
  input: ActorOptions<TLogic>['input'];
  recorder?: Recorder;
  clock?: ActorOptions<TLogic>['clock'];
  /** A root actor that fails is a bug; without this its error would become an uncaught exception much later. */
  onError: (error: unknown) => void;
}

/** Makes a root actor and starts it. */
export function startRoot<TLogic extends AnyActorLogic>(logic: TLogic, options: RootOptions<TLogic>): Actor<TLogic> {
  const actor = createActor(logic, {
    id: options.id,
    input: options.input,
    ...(options.clock !== undefined && { clock: options.clock }),
    ...(options.recorder !== undefined && { inspect: options.recorder.inspect }),
  } as ActorOptions<TLogic>);
  actor.subscribe({ error: options.onError });
  return actor.start();
}

/** Resolves with a root actor's output when it is done, rejects when it fails. */
export function whenDone<TLogic extends AnyActorLogic>(actor: Actor<TLogic>): Promise<SnapshotFrom<TLogic>['output']> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      const snapshot = actor.getSnapshot() as { status: string; output?: unknown; error?: unknown };
      if (snapshot.status === 'done') resolve(snapshot.output as SnapshotFrom<TLogic>['output']);
      if (snapshot.status === 'error') reject(snapshot.error);
    };
    actor.subscribe({ next: settle, complete: settle, error: reject });
    settle();
  });
}
