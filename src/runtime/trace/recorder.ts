/** Converts XState's inspection events to trace records (`records/`). */
import type { AnyActorRef, InspectionEvent } from 'xstate';
import { messageOf } from '../errors.ts';
import { KnownActors, removeHandledEvent } from './known-actors.ts';
import { recordAction } from './records/action.ts';
import { recordDelivery } from './records/delivery.ts';
import { EndRecords } from './records/end.ts';
import type { RecorderContext } from './records/record-context.ts';
import { recordSpawn } from './records/spawn.ts';
import { type MachineState, recordStep } from './records/step.ts';
import { recordUnexpectedEvent } from './records/unexpected.ts';
import type { TraceBody, TracedEvent, TraceRecord } from './trace.ts';
import { TraceOutputs, type TraceOutputsOptions } from './trace-outputs.ts';

/** Milliseconds since a fixed origin; never decreases. */
export type MonotonicClock = () => number;

export interface Recorder {
  /** The `inspect` option of `createActor` for every root actor of the program. */
  inspect: (event: InspectionEvent) => void;
  /** Records an occurrence that no inspection event reports, such as a dropped connection. */
  record: (body: TraceBody) => void;
  /** A message whose only purpose is the trace need not be sent if its type is omitted. */
  omits: (type: string) => boolean;
  /** Calls back with every record. Observers must not throw. @returns a function that stops the calls */
  observe: (observer: (record: TraceRecord) => void) => () => void;
  /** Records the failure of a root actor immediately. Otherwise it is recorded before the next inspection event, or in a microtask. */
  settle: () => void;
  close: () => void;
}

export interface RecorderOptions extends TraceOutputsOptions {
  readonly now?: MonotonicClock;
  /** Converts data of a foreign program before any other use (default: unchanged). */
  readonly data?: (value: unknown) => unknown;
}

export function createRecorder(options: RecorderOptions): Recorder {
  const now = options.now ?? createMonotonicClock();
  const outputs = new TraceOutputs(options);
  const observers = new Set<(record: TraceRecord) => void>();
  let seq = 0;

  const record = (body: TraceBody): number => {
    const line: TraceRecord = { seq: ++seq, t: Math.round(now() * 1000) / 1000, ...body };
    // Observers receive the original record; files and viewers receive a redacted one.
    outputs.write(line);
    for (const observer of observers) observer(line);
    return line.seq;
  };
  const omittedKinds = new Set(options.omits);
  const { foreign = false, data = (value) => value, warn = (message) => process.emitWarning(message) } = options;
  const { inspect, settle } = inspectorOf(
    { actors: new KnownActors(foreign), omitted: omittedKinds, record, data },
    warn,
  );
  return {
    inspect,
    settle,
    record,
    omits: (type) => omittedKinds.has(type),
    observe(observer) {
      observers.add(observer);
      return () => observers.delete(observer);
    },
    close: () => {
      settle();
      outputs.close();
    },
  };
}

function inspectorOf(
  recording: RecorderContext,
  warn: (message: string) => void,
): Pick<Recorder, 'inspect' | 'settle'> {
  const endRecords = new EndRecords();
  const inspect = (event: InspectionEvent): void => {
    const ref = event.actorRef as AnyActorRef;
    endRecords.recordFailures(recording);
    switch (event.type) {
      case '@xstate.actor':
        recordSpawn(recording, ref);
        break;
      case '@xstate.event': {
        const { type } = event.event;
        const from = event.sourceRef as AnyActorRef | undefined;
        // A promise actor sends this to itself; its parent receives xstate.done.actor.
        if (type.startsWith('xstate.promise.')) break;
        // XState reports the end of an actor only after its parent has reacted to it. Recorded here, the end precedes
        // that reaction.
        if (from !== undefined && isEndEvent(type) && !recording.omitted.has(type))
          endRecords.record(recording, from, from.getSnapshot());
        recordDelivery(recording, ref, from, event.event as TracedEvent);
        if (ref._parent === undefined) {
          endRecords.begin(ref);
          scheduleSettle();
        }
        break;
      }
      case '@xstate.microstep':
        recordStep(recording, ref, event.snapshot as MachineState, event.event.type, event._transitions);
        if (event._transitions.length === 0) recordUnexpectedEvent(recording, ref, event.snapshot, event.event.type);
        break;
      case '@xstate.action':
        recordAction(recording, ref, event.action);
        break;
      case '@xstate.snapshot':
        recordStep(recording, ref, event.snapshot as MachineState, event.event.type, []);
        removeHandledEvent(recording.actors.of(ref), event.event);
        endRecords.record(recording, ref, event.snapshot);
        break;
    }
  };
  // An error thrown here would propagate out of the application's actor.send().
  const warnAbout = (error: unknown): void => warn(`trace: ${messageOf(error)}`);
  const recordPending = (): void => {
    try {
      endRecords.recordFailures(recording);
    } catch (error) {
      warnAbout(error);
    }
  };
  let isScheduled = false;
  const scheduleSettle = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    queueMicrotask(() => {
      isScheduled = false;
      recordPending();
    });
  };
  return {
    // A chart causes several events for each transition, so no function is allocated per event.
    inspect: (event) => {
      try {
        inspect(event);
      } catch (error) {
        warnAbout(error);
      }
    },
    settle: recordPending,
  };
}

function isEndEvent(type: string): boolean {
  return /^xstate\.(done|error)\.actor\./.test(type);
}

function createMonotonicClock(): MonotonicClock {
  const origin = performance.now();
  return () => performance.now() - origin;
}
