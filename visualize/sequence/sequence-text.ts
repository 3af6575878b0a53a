/** What the sequence view writes on its arrows. */
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { clockText, stateInWords } from '../model/words.ts';
import { hasLifeline } from './sequence-layout.ts';
import type { Columns } from './sequence-lifelines.ts';
import type { Entry } from './sequence-rows.ts';

const maxPayload = 90;

/** An arrow's text in the diagrams' words: an event's type, `spawn`, `done`, `timer` and the delay's name. */
export function labelOf({ kind }: Entry, record: TraceRecord): string {
  switch (record.kind) {
    case 'event':
      return record.event.type;
    case 'timer':
      return `timer ${record.timer}`;
    case 'transition':
      return stateInWords(record.to);
    case 'effect':
      return record.effect;
    case 'stop':
      return kind === 'done' ? 'done' : record.status === 'error' ? 'failed' : 'stopped';
    default:
      return record.kind;
  }
}

/** The message's type as diagrams have it; undefined for what is none. */
export function typeOf(entry: Entry, record: TraceRecord): string | undefined {
  return entry.kind === 'state' || entry.kind === 'effect' || entry.kind === 'ended'
    ? undefined
    : labelOf(entry, record);
}

/** What goes with it, short enough for a line. */
export function payloadOf(record: TraceRecord): string {
  switch (record.kind) {
    case 'event': {
      const { type: _, ...payload } = record.event;
      return fieldsOf(payload);
    }
    case 'effect':
      return valueOf(record.params);
    case 'stop':
      return record.error ?? valueOf(record.output);
    case 'spawn':
      return record.actor;
    default:
      return '';
  }
}

/**
 * Who it is, where the lifeline does not tell: an effect that is drawn on the lifeline of its actor (`process → `), one of
 * many that share a lifeline (`ads-connection-17: `).
 */
export function whoOf(entry: Entry, columns: Columns): string {
  const { from, to, fromActor, toActor, kind } = entry;
  const one = [toActor, fromActor].find((actor, i) => isShared(columns, i === 0 ? to : from) && !actor.includes('/'));
  const member = one === undefined || kind === 'spawn' ? '' : `${one}: `;
  if (from === to || kind === 'spawn') return member;
  if (!hasLifeline(columns, from)) return `${member}${lastName(fromActor)} → `;
  return hasLifeline(columns, to) ? member : `${member}→ ${lastName(toActor)} `;
}

function isShared(columns: Columns, lifeline: Entry['from']): boolean {
  return (columns.list[columns.of(lifeline) ?? -1]?.lifelines.length ?? 0) > 1;
}

/** The row as a sentence, for who does not see the arrows. */
export function sentenceOf(entry: Entry, record: TraceRecord, who = ''): string {
  const { kind, fromActor, toActor } = entry;
  // What is to be seen must be in what is said: who speaks to the page says what it reads there.
  const label = who + labelOf(entry, record);
  const payload = payloadOf(record);
  const what = payload === '' ? label : `${label}, ${payload}`;
  const stamp = `${record.seq}, ${clockText(record.t)}`;
  if (kind === 'state' && record.kind === 'transition') return `${stamp}: ${fromActor} is now ${label}`;
  return fromActor === toActor ? `${stamp}: ${fromActor}: ${what}` : `${stamp}: ${fromActor} to ${toActor}: ${what}`;
}

function lastName(effect: string): string {
  return effect.slice(effect.lastIndexOf('/') + 1);
}

function fieldsOf(payload: Readonly<Record<string, unknown>>): string {
  const text = Object.entries(payload)
    .map(([field, value]) => `${field}: ${valueOf(value)}`)
    .join(', ');
  return shortened(text);
}

function valueOf(value: unknown): string {
  if (value === undefined) return '';
  return shortened(typeof value === 'string' ? value : JSON.stringify(value));
}

function shortened(text: string): string {
  return text.length <= maxPayload ? text : `${text.slice(0, maxPayload - 1)}…`;
}
