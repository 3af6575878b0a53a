/**
 * Starts statecharts and records what they do. The same function serves production and tests: a test hands in a
 * virtual clock and a sink that it reads.
 */
import {
  type Actor,
  type ActorOptions,
  type AnyActorLogic,
  type AnyActorRef,
  createActor,
  type InspectionEvent,
  type SnapshotFrom,
  StateMachine,
  type StateValue,
} from 'xstate';
import { messageOf } from './errors.ts';
import { type TraceBody, type TracedEvent, type TraceRecord, type TraceSink, traceVersion } from './trace.ts';

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
}

/**
 * An actor's stable name. A machine's actor is known by its id (`supervisor`, `epoch-3`, `ads-connection-17`); an effect
 * by its parent's name and its own (`epoch-3/process`). XState's session id counts per process and is never used.
 */
export function actorName(ref: AnyActorRef): string {
  const parent = ref._parent;
  return parent === undefined || isMachine(ref) ? ref.id : `${actorName(parent)}/${ref.id}`;
}

function isMachine(ref: AnyActorRef): boolean {
  return (ref as AnyActorRef & { logic?: unknown }).logic instanceof StateMachine;
}

/** `serving.settled`; parallel regions joined with ` | `, in the order of the definition. */
export function stateName(value: StateValue | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  return Object.entries(value)
    .map(([state, inner]) => {
      const rest = stateName(inner);
      return rest === '' ? state : `${state}.${rest}`;
    })
    .join(' | ');
}

/** Turns XState's inspection events into trace records. Cheap: no snapshot is copied, no context is read. */
export function createRecorder(options: RecorderOptions): Recorder {
  const sinks = options.sinks ?? [];
  const now = options.now ?? monotonic();
  const observers = new Set<(record: TraceRecord) => void>();
  const states = new WeakMap<AnyActorRef, string>();
  let seq = 0;

  for (const sink of sinks) {
    sink.write({
      kind: 'header',
      version: traceVersion,
      program: options.program,
      pid: options.pid ?? process.pid,
      startedAt: (options.startedAt ?? new Date()).toISOString(),
    });
  }

  const record = (body: TraceBody): void => {
    const line: TraceRecord = { seq: ++seq, t: Math.round(now() * 1000) / 1000, ...body };
    for (const sink of sinks) sink.write(line);
    for (const observer of observers) observer(line);
  };

  const onSpawn = (ref: AnyActorRef): void => {
    const parent = ref._parent;
    const logic = (ref as AnyActorRef & { logic?: unknown }).logic;
    record({
      kind: 'spawn',
      actor: actorName(ref),
      ...(parent !== undefined && { parent: actorName(parent) }),
      ...(logic instanceof StateMachine && { machine: logic.id }),
    });
  };

  const onEvent = (to: AnyActorRef, from: AnyActorRef | undefined, event: TracedEvent): void => {
    // What a promise tells itself; its parent hears of it by xstate.done.actor.
    if (event.type === 'xstate.init' || event.type.startsWith('xstate.promise.')) return;
    if (event.type.startsWith('xstate.after.')) {
      // xstate.after.<delay>.<state node id>: the delay's name is what the machine calls it.
      record({ kind: 'timer', actor: actorName(to), timer: event.type.split('.')[2] ?? event.type });
      return;
    }
    // XState tells of the end of an actor only when its parent has reacted to it: told here, the end comes before that.
    if (from !== undefined && /^xstate\.(done|error)\.actor\./.test(event.type)) onEnd(from, from.getSnapshot());
    record({
      kind: 'event',
      from: from === undefined ? 'outside' : actorName(from),
      to: actorName(to),
      event: plain(event),
    });
  };

  const onState = (ref: AnyActorRef, value: StateValue | undefined, cause: string): void => {
    const to = stateName(value);
    const from = states.get(ref) ?? '';
    if (to === from) return;
    states.set(ref, to);
    record({ kind: 'transition', actor: actorName(ref), from, to, cause });
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
          onState(ref, stateOf(event.snapshot), event.event.type);
          break;
        case '@xstate.action':
          if (!event.action.type.startsWith('xstate.')) {
            record({
              kind: 'effect',
              actor: actorName(ref),
              effect: event.action.type,
              ...(event.action.params !== undefined && { params: event.action.params }),
            });
          }
          break;
        case '@xstate.snapshot':
          onState(ref, stateOf(event.snapshot), event.event.type);
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
      actor: actorName(ref),
      status: status as 'done' | 'stopped' | 'error',
      ...(output !== undefined && { output }),
      ...(error !== undefined && { error: messageOf(error) }),
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

/** An error in an event is an Error object, which JSON shows as `{}`: keep its message. */
function plain(event: TracedEvent): TracedEvent {
  return event.error instanceof Error ? { ...event, error: event.error.message } : event;
}

function stateOf(snapshot: unknown): StateValue | undefined {
  return (snapshot as { value?: StateValue }).value;
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
