/** What the sequence view writes on its arrows. */
import type { TracedEvent, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { clockText, stateInWords } from '../model/recording/words.ts';
import { hasLifeline } from './sequence-layout.ts';
import type { Columns } from './sequence-lifelines.ts';
import type { Entry } from './sequence-rows.ts';

/** A row has room for so many characters at most; what it has none for is left out by the style sheet. */
const maxPayload = 300;

/** An arrow's text in the diagrams' words: an event's type, `spawn`, `done`, `timer` and the delay's name. */
export function labelOf({ kind }: Entry, record: TraceRecord): string {
  switch (record.kind) {
    case 'event':
      return record.undelivered === true ? `${record.event.type} (not delivered)` : record.event.type;
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
    : record.kind === 'event'
      ? record.event.type
      : labelOf(entry, record);
}

/** What goes with it, short enough for a line. @param most characters */
export function payloadOf(record: TraceRecord, most = maxPayload): string {
  switch (record.kind) {
    case 'event':
      return fieldsOf(record.event, most);
    case 'effect':
      return valueOf(record.params, most);
    case 'stop':
      return record.error === undefined ? valueOf(record.output, most) : shortened(record.error, most);
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
export function sentenceOf(entry: Entry, record: TraceRecord, who = '', most = maxPayload): string {
  const { kind, fromActor, toActor } = entry;
  // What is to be seen must be in what is said: who speaks to the page says what it reads there.
  const label = who + labelOf(entry, record);
  const payload = payloadOf(record, most);
  const what = payload === '' ? label : `${label}, ${payload}`;
  const stamp = `${record.seq}, ${clockText(record.t)}`;
  if (kind === 'state' && record.kind === 'transition') return `${stamp}: ${fromActor} is now ${label}`;
  return fromActor === toActor ? `${stamp}: ${fromActor}: ${what}` : `${stamp}: ${fromActor} to ${toActor}: ${what}`;
}

function lastName(effect: string): string {
  return effect.slice(effect.lastIndexOf('/') + 1);
}

/** All fields but the type, as far as there is room: of a million only those that are read. */
function fieldsOf(event: TracedEvent, most: number): string {
  let text = '';
  for (const field in event) {
    if (field === 'type') continue;
    text += `${text === '' ? '' : ', '}${field}: ${valueOf(event[field], most)}`;
    if (text.length > most) break;
  }
  return shortened(text, most);
}

function valueOf(value: unknown, most: number): string {
  if (value === undefined) return '';
  return shortened(typeof value === 'string' ? value : JSON.stringify(value), most);
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
