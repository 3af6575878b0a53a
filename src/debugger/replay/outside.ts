/** The environment of a replay, which repeats its recorded actions. */
import type { AnyActorRef } from 'xstate';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { completedValue } from './recorded-value.ts';
import type { ReplayedActors } from './replayed-actors.ts';
import type { TraceToReplay } from './replayed-trace.ts';

export class Outside {
  readonly #recording: TraceToReplay;
  readonly #actors: ReplayedActors;
  readonly #warn: (warning: string) => void;

  constructor(recording: TraceToReplay, actors: ReplayedActors, warn: (warning: string) => void) {
    this.#recording = recording;
    this.#actors = actors;
    this.#warn = warn;
  }

  /** Whether a record is an action of the environment, not of a machine. */
  isOutsideAction(recordIndex: number): boolean {
    const record = this.#recording.records[recordIndex]!;
    if (this.#rootToStart(record) !== undefined) return true;
    switch (record.kind) {
      case 'spawn':
        return record.parent === undefined;
      case 'event':
        return !isEndEvent(record.event.type) && !this.#isMachine(this.#actors.find(record.from));
      case 'timer':
        return true;
      case 'stop': {
        const actor = this.#actors.find(record.actor);
        if (record.status === 'stopped') return this.#stoppedRoot(recordIndex) !== undefined;
        return actor !== undefined && this.#actors.isEffect(actor);
      }
      default:
        return false;
    }
  }

  /** @returns the reason if the action could not be repeated */
  repeatAction(recordIndex: number): string | undefined {
    const record = this.#recording.records[recordIndex]!;
    switch (record.kind) {
      case 'spawn':
        if (record.parent !== undefined) return undefined;
        this.#actors.createRoot(record.actor, this.#recording.machineOf(record), this.#restoreValue(record, 'input'));
        return undefined;
      case 'event':
        return this.#deliverEvent(record);
      case 'timer': {
        const actor = this.#actors.find(record.actor);
        const hasElapsed = actor !== undefined && this.#actors.elapse(actor, record.timer);
        return hasElapsed ? undefined : `timer ${record.timer} of ${record.actor} is not running`;
      }
      case 'stop':
        return this.#deliverEnd(record, recordIndex);
      default:
        return undefined;
    }
  }

  /** Whether an effect that has not begun yet will repeat the record. */
  isRepeatedByEffect(recordIndex: number): boolean {
    const record = this.#recording.records[recordIndex]!;
    const effect = this.#actors.find(record.kind === 'event' ? record.from : subjectOf(record));
    return effect !== undefined && this.#actors.isEffect(effect) && !this.#actors.hasStarted(effect);
  }

  /**
   * The program must have started the root by this record, but may have created it long before.
   *
   * @returns whether a root was started
   */
  startRootBefore(recordIndex: number): boolean {
    const root = this.#rootToStart(this.#recording.records[recordIndex]!);
    if (root !== undefined) this.#actors.startRoot(root);
    return root !== undefined;
  }

  #rootToStart(record: TraceRecord): AnyActorRef | undefined {
    switch (record.kind) {
      case 'transition':
      case 'step':
      case 'timer-started':
      case 'effect':
      case 'stop':
        return this.#actors.unstartedRootOf(record.actor);
      case 'event':
        return this.#actors.unstartedRootOf(record.from);
      default:
        return undefined;
    }
  }

  #deliverEvent(record: TraceRecord & { kind: 'event' }): string | undefined {
    const from = this.#actors.find(record.from);
    const to = this.#actors.find(record.to);
    if (isEndEvent(record.event.type)) return undefined;
    if (to === undefined) return `actor ${record.to} does not exist`;
    if (from !== undefined && this.#isMachine(from)) {
      this.#actors.deliverDelayed(from, to, record.event.type);
      return undefined;
    }
    if (from !== undefined && from.getSnapshot().status !== 'active') return `actor ${record.from} has stopped`;
    const event = this.#restoreValue(record, 'event') as { type: string };
    this.#actors.deliver(record.from, to, this.#withError(event));
    return undefined;
  }

  /** A trace contains only the message of an error. */
  #withError(event: { type: string }): { type: string } {
    const { error } = event as { error?: unknown };
    return typeof error === 'string' && event.type.startsWith('xstate.') ? { ...event, ...errorOf(error) } : event;
  }

  #deliverEnd(record: TraceRecord & { kind: 'stop' }, recordIndex: number): string | undefined {
    const actor = this.#actors.find(record.actor);
    if (actor === undefined) return `actor ${record.actor} does not exist`;
    if (record.status === 'stopped') {
      const root = this.#stoppedRoot(recordIndex);
      if (root !== undefined) this.#actors.stopRoot(root);
      return undefined;
    }
    if (!this.#actors.isEffect(actor)) return undefined;
    if (actor.getSnapshot().status !== 'active') return `actor ${record.actor} has stopped`;
    if (record.status === 'done') this.#actors.settle(actor, { value: this.#restoreValue(record, 'output') });
    else this.#actors.settle(actor, this.#rejection(record, recordIndex));
    return undefined;
  }

  /** The parent receives the thrown value itself if that was not an Error. */
  #rejection({ error = '' }: TraceRecord & { kind: 'stop' }, recordIndex: number): { error: unknown } {
    const nextRecord = this.#recording.records[recordIndex + 1];
    const recordedError =
      nextRecord?.kind === 'event' && isEndEvent(nextRecord.event.type) ? nextRecord.event.error : undefined;
    return recordedError === undefined || typeof recordedError === 'string' ? errorOf(error) : { error: recordedError };
  }

  /** The root is stopped if the consecutive stops from this record on are those of its entire tree. */
  #stoppedRoot(recordIndex: number): AnyActorRef | undefined {
    const name = this.#recording.rootStoppedAt(recordIndex);
    const root = name === undefined ? undefined : this.#actors.find(name);
    return root?._parent === undefined && root?.getSnapshot().status === 'active' ? root : undefined;
  }

  #isMachine(actor: AnyActorRef | undefined): boolean {
    return actor !== undefined && !this.#actors.isEffect(actor);
  }

  #restoreValue(record: TraceRecord, field: 'input' | 'event' | 'output'): unknown {
    const { [field]: value } = record as unknown as Record<string, unknown>;
    return completedValue(value, (path) => {
      this.#warn(`record ${record.seq}: /${field}${path} is truncated in the trace`);
    });
  }
}

/** XState sends these events when an actor ends. */
function isEndEvent(eventType: string): boolean {
  return /^xstate\.(done|error)\.actor\./.test(eventType);
}

function errorOf(message: string): { error: Error } {
  return { error: new Error(message) };
}

function subjectOf(record: TraceRecord): string {
  return record.kind === 'event' ? record.to : record.actor;
}
