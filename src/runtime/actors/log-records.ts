/** Tells in the log what the statecharts do: one line for each transition, and one for each thing that went wrong. */

import type { Logger } from '../output/log.ts';
import type { Recorder } from '../trace/recorder.ts';
import { redactor } from '../trace/redact.ts';
import type { TraceRecord } from '../trace/trace.ts';

export interface RecordLogOptions {
  /** Transitions that are told at debug level only, by their actor and cause: the many that are alike. */
  readonly quiet?: (actor: string, cause: string) => boolean;
  /** A line of its own for what a program thinks worth telling; undefined: as any other record. */
  readonly tell?: (record: TraceRecord) => LogLine | undefined;
}

/** One line of the log. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn';
  readonly line: string;
  readonly fields: object;
}

/** The same trouble is passed from an effect to its machine to that one's parent: told once. */
const repetitionMs = 200;
const longestFact = 24;
const redact = redactor();

/**
 * Tells what a recorder sees.
 *
 * @returns how to stop it
 */
export function logRecords(
  recorder: Recorder,
  log: Logger,
  { quiet = () => false, tell }: RecordLogOptions = {},
): () => void {
  const logged = new Map<string, number>();
  let delivered: TraceRecord | undefined;
  return recorder.observe((record) => {
    if (record.kind === 'event') delivered = record;
    if (record.kind === 'transition') {
      const { actor, from, to, on } = record;
      const why = [causeInWords(on), factsOf(delivered, actor, on)].filter(Boolean).join(' ');
      log[quiet(actor, on) ? 'debug' : 'info'](`${actor}: ${from === '' ? '' : `${from} → `}${to} (${why})`);
      return;
    }
    const own = tell?.(record);
    if (own !== undefined) {
      log[own.level](own.line, own.fields);
      return;
    }
    const trouble = troubleIn(record);
    if (trouble === undefined) return;
    for (const [reason, at] of logged) if (record.t - at > repetitionMs) logged.delete(reason);
    if (logged.has(trouble.reason)) return;
    logged.set(trouble.reason, record.t);
    log.warn(`${trouble.who}: ${trouble.what}`, { reason: trouble.reason });
  });
}

interface Trouble {
  readonly who: string;
  readonly what: string;
  readonly reason: string;
}

const troublesome = /[.-](failed|waiting|rejected|overdue|unkillable)$/;

function troubleIn(record: TraceRecord): Trouble | undefined {
  if (record.kind === 'stop' && record.status === 'error') {
    return { who: record.actor, what: 'failed', reason: record.error ?? 'no reason given' };
  }
  if (record.kind === 'unexpected') {
    return { who: record.actor, what: `${record.on} was not expected in ${record.state}`, reason: 'a bug in a chart' };
  }
  if (record.kind !== 'event') return undefined;
  const { type, reason, error } = record.event;
  if (type.startsWith('xstate.error.actor.')) {
    return { who: `${record.to}/${type.slice('xstate.error.actor.'.length)}`, what: 'failed', reason: String(error) };
  }
  if (!troublesome.test(type)) return undefined;
  return { who: record.from, what: type, reason: typeof reason === 'string' ? reason : type };
}

/** What the event that a transition names said, in short: `digest=1a2b3c4d5e6f… files=3`. */
function factsOf(delivered: TraceRecord | undefined, actor: string, cause: string): string {
  if (delivered?.kind !== 'event' || delivered.to !== actor || delivered.event.type !== cause) return '';
  return Object.entries(delivered.event)
    .filter(
      ([key, value]) => key !== 'type' && key !== 'actorId' && (typeof value === 'string' || typeof value === 'number'),
    )
    .filter(([, value]) => value !== '')
    .map(([key, value]) => `${key}=${shortened(redact({ [key]: value })[key])}`)
    .join(' ');
}

function shortened(value: unknown): string {
  const text = String(value);
  return text.length > longestFact ? `${text.slice(0, longestFact / 2)}…` : text;
}

/** `config.changed` as it is; what the runtime itself sends in plain words. */
export function causeInWords(cause: string): string {
  if (cause === 'xstate.init') return 'start';
  const [, kind, rest] = /^xstate\.(after|done\.actor|error\.actor|done\.state)\.(.*)$/.exec(cause) ?? [];
  if (rest === undefined) return cause;
  if (kind === 'after') return `after ${rest.split('.')[0]}`;
  return `${rest} ${kind === 'error.actor' ? 'failed' : 'is done'}`;
}
