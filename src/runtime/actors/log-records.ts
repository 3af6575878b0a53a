/** Logs state changes of statecharts that operators know, and failures. */

import { cachedFunction } from '../cached-function.ts';
import { isLogged, type LogEntry } from '../log-events/log-events.ts';
import type { Logger } from '../output/log.ts';
import { scopeOfActor } from '../output/log-scopes.ts';
import type { Recorder } from '../trace/recorder.ts';
import { redactor } from '../trace/redact.ts';
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
const redact = redactor();

export function logRecords(recorder: Recorder, log: Logger, { states, entry }: RecordLogOptions): () => void {
  const loggedAtByKey = new Map<string, number>();
  const general = new Map<string, LogEntry>();
  const writeGeneral = (): void => {
    for (const entry of general.values()) log.write(entry);
    general.clear();
  };
  const transitions = new TransitionLog(log, states);
  let delivered: TraceRecord | undefined;
  const end = recorder.observe((record) => {
    if (record.kind === 'event') delivered = record;
    if (record.kind === 'transition') {
      transitions.take(record, delivered);
      return;
    }
    if (record.kind === 'stop') transitions.forget(record.actor);
    const specific = entry?.(record);
    if (specific === 'logged elsewhere') return;
    if (specific !== undefined) {
      log.write(specific);
      return;
    }
    const failure = failureIn(record);
    if (failure === undefined) return;
    const reason = String(failure.reason);
    for (const [earlierKey, loggedAt] of loggedAtByKey)
      if (record.t - loggedAt > repetitionMs) loggedAtByKey.delete(earlierKey);
    const isGeneral = failure.event === 'actor.failed';
    // The parent of the failed actor reports the consequence in the same turn of the event loop, and its line replaces
    // the general one.
    if (!isGeneral && general.delete(reason)) log.write(failure);
    if (loggedAtByKey.has(reason)) return;
    loggedAtByKey.set(reason, record.t);
    if (!isGeneral) {
      log.write(failure);
      return;
    }
    if (general.size === 0) queueMicrotask(writeGeneral);
    general.set(reason, failure);
  });
  return () => {
    end();
    writeGeneral();
  };
}

type Transition = TraceRecord & { kind: 'transition' };

class TransitionLog {
  readonly #log: Logger;
  readonly #states: OperatorStates;
  readonly #stateWords = new Map<string, string>();
  readonly #wordsOf: (actor: string) => ((path: string) => string | undefined) | undefined;

  constructor(log: Logger, states: OperatorStates) {
    this.#log = log;
    this.#states = states;
    const wordsOfChart = cachedFunction((chart) => {
      const chartWords = states.words[chart];
      return chartWords && cachedFunction((path) => wordOf(chartWords, path) ?? undefined);
    });
    this.#wordsOf = cachedFunction((actor) => wordsOfChart(scopeOfActor(actor)));
  }

  take(record: Transition, delivered: TraceRecord | undefined): void {
    const { actor, from, to, on } = record;
    const event = eventOf(delivered, record);
    if (this.#log.enabled('debug')) {
      this.#log.debug('chart.transition', { actor, from, to, on: describeCause(on), ...factsOf(event) });
    }
    const stateWord = this.#wordsOf(actor)?.(to);
    const previous = this.#stateWords.get(actor);
    if (stateWord === undefined || stateWord === previous) return;
    this.#stateWords.set(actor, stateWord);
    if (previous === undefined) return;
    const { causes, alarming } = this.#states;
    const key = describeCause(on);
    const texts = Object.hasOwn(causes, key) ? [causes[key]!].flat() : [];
    const cause = texts.map((text) => filledIn(text, event)).find((text) => text !== undefined) ?? key;
    const line = { actor, from: previous, to: stateWord, cause, ...(event !== undefined && { on }) };
    if (alarming.includes(stateWord)) this.#log.warn('state.degraded', line);
    else this.#log.info('state.changed', line);
  }

  forget(actor: string): void {
    this.#stateWords.delete(actor);
  }
}

export function wordOf(stateWords: Readonly<Record<string, string | null>>, path: string): string | null | undefined {
  const names = path.split('.');
  for (let length = names.length; length > 0; length--) {
    const beginning = names.slice(0, length).join('.');
    if (Object.hasOwn(stateWords, beginning)) return stateWords[beginning];
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
  if (!isFailureType(type) || !isLogged(type)) return undefined;
  const facts = redact(scalarsOf(record.event));
  return { event: type, actor: record.from, ...facts, reason: typeof reason === 'string' ? reason : type };
}

type EventRecord = TraceRecord & { kind: 'event' };

function eventOf(delivered: TraceRecord | undefined, { actor, on }: Transition): EventRecord['event'] | undefined {
  if (delivered?.kind !== 'event' || delivered.to !== actor || delivered.event.type !== on) return undefined;
  return delivered.event;
}

function factsOf(event: EventRecord['event'] | undefined): object {
  if (event === undefined) return {};
  const facts = redact(scalarsOf(event));
  return Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, shortened(value)]));
}

function scalarsOf(event: EventRecord['event']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).filter(
      ([key, value]) =>
        key !== 'type' && key !== 'actorId' && value !== '' && (typeof value === 'string' || typeof value === 'number'),
    ),
  );
}

function shortened(value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= maxFactCharacters) return value;
  return `${value.slice(0, maxFactCharacters / 2)}…`;
}

function filledIn(text: string, event: EventRecord['event'] | undefined): string | undefined {
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
