/** Logs state changes of statecharts that operators know, and failures. */

import { cachedFunction } from '../cached-function.ts';
import { isLeveledEvent, type LogEntry } from '../log-events/log-events.ts';
import type { Logger } from '../output/log.ts';
import { scopeOfActor } from '../output/log-scopes.ts';
import type { Recorder } from '../trace/recorder.ts';
import { createRedactor } from '../trace/redact.ts';
import type { TraceRecord } from '../trace/trace.ts';

/** Operators' words for states and causes; charts that are not listed are logged at debug level only. */
export interface OperatorStates {
  /**
   * Words for states, by chart (the actor's name without a number) and by path of the state. The longest listed prefix of a path applies. `null` is a
   * transient state, for which the previous word is kept.
   */
  readonly words: Readonly<Record<string, Readonly<Record<string, string | null>>>>;
  /**
   * Words for causes, by event type, or by the text of {@link describeCause} for an event of XState. `{name}` is replaced with the event's field of
   * that name. Of several texts, the first one applies whose fields the event has.
   */
  readonly causes: Readonly<Record<string, string | readonly string[]>>;
  readonly alarming: readonly string[];
}

export interface RecordLogOptions {
  readonly states: OperatorStates;
  readonly entry?: (record: TraceRecord) => LogEntry | 'logged elsewhere' | undefined;
}

/**
 * Within this time an effect, its machine and the parent of the machine report the same failure, which is logged once.
 */
const repetitionMs = 200;
const maxFactCharacters = 24;
const redact = createRedactor();

export function logRecords(recorder: Recorder, log: Logger, { states, entry }: RecordLogOptions): () => void {
  const loggedAtByKey = new Map<string, number>();
  const pendingGeneralEntries = new Map<string, LogEntry>();
  const writeGeneral = (): void => {
    for (const entry of pendingGeneralEntries.values()) log.write(entry);
    pendingGeneralEntries.clear();
  };
  const transitions = new TransitionLog(log, states);
  let deliveredRecord: TraceRecord | undefined;
  const stopObserving = recorder.observe((record) => {
    if (record.kind === 'event') deliveredRecord = record;
    if (record.kind === 'transition') {
      transitions.logTransition(record, deliveredRecord);
      return;
    }
    if (record.kind === 'stop') transitions.removeActor(record.actor);
    const specificEntry = entry?.(record);
    if (specificEntry === 'logged elsewhere') return;
    if (specificEntry !== undefined) {
      log.write(specificEntry);
      return;
    }
    const failure = failureIn(record);
    if (failure === undefined) return;
    const reason = String(failure.reason);
    for (const [earlierKey, loggedAt] of loggedAtByKey)
      if (record.t - loggedAt > repetitionMs) loggedAtByKey.delete(earlierKey);
    const isActorFailure = failure.event === 'actor.failed';
    // The parent of the failed actor reports the consequence in the same turn of the event loop. That line replaces the general line about the actor.
    if (!isActorFailure && pendingGeneralEntries.delete(reason)) log.write(failure);
    if (loggedAtByKey.has(reason)) return;
    loggedAtByKey.set(reason, record.t);
    if (!isActorFailure) {
      log.write(failure);
      return;
    }
    if (pendingGeneralEntries.size === 0) queueMicrotask(writeGeneral);
    pendingGeneralEntries.set(reason, failure);
  });
  return () => {
    stopObserving();
    writeGeneral();
  };
}

type Transition = TraceRecord & { kind: 'transition' };

class TransitionLog {
  readonly #log: Logger;
  readonly #states: OperatorStates;
  readonly #stateLabels = new Map<string, string>();
  readonly #stateLabelsOf: (actor: string) => ((path: string) => string | undefined) | undefined;

  constructor(log: Logger, states: OperatorStates) {
    this.#log = log;
    this.#states = states;
    const wordsOfChart = cachedFunction((chart) => {
      const chartWords = states.words[chart];
      return chartWords && cachedFunction((path) => stateLabelOf(chartWords, path) ?? undefined);
    });
    this.#stateLabelsOf = cachedFunction((actor) => wordsOfChart(scopeOfActor(actor)));
  }

  logTransition(record: Transition, deliveredRecord: TraceRecord | undefined): void {
    const { actor, from, to, on } = record;
    const event = eventOf(deliveredRecord, record);
    if (this.#log.enabled('debug')) {
      this.#log.debug('chart.transition', { actor, from, to, on: describeCause(on), ...factsOf(event) });
    }
    const stateLabel = this.#stateLabelsOf(actor)?.(to);
    const previous = this.#stateLabels.get(actor);
    if (stateLabel === undefined || stateLabel === previous) return;
    this.#stateLabels.set(actor, stateLabel);
    if (previous === undefined) return;
    const { causes, alarming } = this.#states;
    const key = describeCause(on);
    const texts = Object.hasOwn(causes, key) ? [causes[key]!].flat() : [];
    const cause = texts.map((text) => fillPlaceholders(text, event)).find((text) => text !== undefined) ?? key;
    const line = { actor, from: previous, to: stateLabel, cause, ...(event !== undefined && { on }) };
    if (alarming.includes(stateLabel)) this.#log.warn('state.degraded', line);
    else this.#log.info('state.changed', line);
  }

  removeActor(actor: string): void {
    this.#stateLabels.delete(actor);
  }
}

export function stateLabelOf(
  stateLabels: Readonly<Record<string, string | null>>,
  path: string,
): string | null | undefined {
  const names = path.split('.');
  for (let length = names.length; length > 0; length--) {
    const pathPrefix = names.slice(0, length).join('.');
    if (Object.hasOwn(stateLabels, pathPrefix)) return stateLabels[pathPrefix];
  }
  return undefined;
}

const failureTypes = /[.-](failed|waiting|rejected|overdue|unkillable)$/;

/** Each failure type has an entry in `src/runtime/log-events`. */
export const isFailureType: (type: string) => boolean = cachedFunction((type) => failureTypes.test(type));

function failureIn(record: TraceRecord): LogEntry | undefined {
  if (record.kind === 'stop' && record.status === 'error') {
    return { event: 'actor.failed', actor: record.actor, reason: record.error ?? 'unknown' };
  }
  if (record.kind === 'unexpected') {
    const { actor, on, state } = record;
    return { event: 'actor.unexpectedEvent', actor, on, state, reason: `${actor} ${on} ${state}` };
  }
  if (record.kind !== 'event') return undefined;
  const { type, reason, error } = record.event;
  if (type.startsWith('xstate.error.actor.')) {
    const actor = `${record.to}/${type.slice('xstate.error.actor.'.length)}`;
    return { event: 'actor.failed', actor, reason: String(error) };
  }
  if (!isFailureType(type) || !isLeveledEvent(type)) return undefined;
  const facts = redact(scalarsOf(record.event));
  return { event: type, actor: record.from, ...facts, reason: typeof reason === 'string' ? reason : type };
}

type EventRecord = TraceRecord & { kind: 'event' };

function eventOf(
  deliveredRecord: TraceRecord | undefined,
  { actor, on }: Transition,
): EventRecord['event'] | undefined {
  if (deliveredRecord?.kind !== 'event' || deliveredRecord.to !== actor || deliveredRecord.event.type !== on)
    return undefined;
  return deliveredRecord.event;
}

function factsOf(event: EventRecord['event'] | undefined): object {
  if (event === undefined) return {};
  const facts = redact(scalarsOf(event));
  return Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, truncateValue(value)]));
}

function scalarsOf(event: EventRecord['event']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).filter(
      ([key, value]) =>
        key !== 'type' && key !== 'actorId' && value !== '' && (typeof value === 'string' || typeof value === 'number'),
    ),
  );
}

function truncateValue(value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= maxFactCharacters) return value;
  return `${value.slice(0, maxFactCharacters / 2)}…`;
}

function fillPlaceholders(text: string, event: EventRecord['event'] | undefined): string | undefined {
  const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  if (names.some((name) => event?.[name] === undefined || event[name] === null)) return undefined;
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(event![name]));
}

export function describeCause(cause: string): string {
  if (cause === 'xstate.init') return 'start';
  const [, kind, causeName] = /^xstate\.(after|done\.actor|error\.actor|done\.state)\.(.*)$/.exec(cause) ?? [];
  if (causeName === undefined) return cause;
  if (kind === 'after') return `after ${causeName.split('.')[0]}`;
  return `${causeName} ${kind === 'error.actor' ? 'failed' : 'done'}`;
}
