import type { TracedEvent, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { clockText, stateText } from '../model/recording/words.ts';
import { hasLifeline } from './sequence-layout.ts';
import type { Columns } from './sequence-lifelines.ts';
import type { Entry } from './sequence-rows.ts';

/** The style sheet cuts off longer text. */
const maxPayload = 300;

/** As in the diagrams: event type, `spawn`, `done`, or `timer` and the delay's name. */
export function labelOf({ kind }: Entry, record: TraceRecord): string {
  switch (record.kind) {
    case 'event':
      return record.undelivered === true ? `${record.event.type} (not delivered)` : record.event.type;
    case 'timer':
      return `timer ${record.timer}`;
    case 'transition':
      return stateText(record.to);
    case 'effect':
      return record.effect;
    case 'stop':
      return kind === 'done' ? 'done' : record.status === 'error' ? 'failed' : 'stopped';
    default:
      return record.kind;
  }
}

/** `undefined` for records that are no messages. */
export function typeOf(entry: Entry, record: TraceRecord): string | undefined {
  return entry.kind === 'state' || entry.kind === 'effect' || entry.kind === 'ended'
    ? undefined
    : record.kind === 'event'
      ? record.event.type
      : labelOf(entry, record);
}

export function payloadOf(record: TraceRecord, maxChars = maxPayload): string {
  switch (record.kind) {
    case 'event':
      return fieldsOf(record.event, maxChars);
    case 'effect':
      return valueOf(record.params, maxChars);
    case 'stop':
      return record.error === undefined ? valueOf(record.output, maxChars) : shortened(record.error, maxChars);
    case 'spawn':
      return record.actor;
    default:
      return '';
  }
}

/** Names the actor if the lifeline does not show it: an effect of the owner (`process → `), or one of many actors (`ads-connection-17: `). */
export function actorPrefixOf(entry: Entry, columns: Columns): string {
  const { from, to, fromActor, toActor, kind } = entry;
  const sharedActor = [toActor, fromActor].find(
    (actor, i) => isShared(columns, i === 0 ? to : from) && !actor.includes('/'),
  );
  const member = sharedActor === undefined || kind === 'spawn' ? '' : `${sharedActor}: `;
  if (from === to || kind === 'spawn') return member;
  if (!hasLifeline(columns, from)) return `${member}${lastName(fromActor)} → `;
  return hasLifeline(columns, to) ? member : `${member}→ ${lastName(toActor)} `;
}

function isShared(columns: Columns, lifeline: Entry['from']): boolean {
  return (columns.list[columns.columnIndexOf(lifeline) ?? -1]?.lifelines.length ?? 0) > 1;
}

/** For screen readers. */
export function sentenceOf(entry: Entry, record: TraceRecord, actorPrefix = '', maxChars = maxPayload): string {
  const { kind, fromActor, toActor } = entry;
  // Contains the visible text, so that voice control can find the row.
  const label = actorPrefix + labelOf(entry, record);
  const payload = payloadOf(record, maxChars);
  const text = payload === '' ? label : `${label}, ${payload}`;
  const stamp = `${record.seq}, ${clockText(record.t)}`;
  if (kind === 'state' && record.kind === 'transition') return `${stamp}: ${fromActor} is now ${label}`;
  return fromActor === toActor ? `${stamp}: ${fromActor}: ${text}` : `${stamp}: ${fromActor} to ${toActor}: ${text}`;
}

function lastName(effect: string): string {
  return effect.slice(effect.lastIndexOf('/') + 1);
}

/** Of a million fields, only those that fit are read. */
function fieldsOf(event: TracedEvent, maxChars: number): string {
  let text = '';
  for (const field in event) {
    if (field === 'type') continue;
    text += `${text === '' ? '' : ', '}${field}: ${valueOf(event[field], maxChars)}`;
    if (text.length > maxChars) break;
  }
  return shortened(text, maxChars);
}

function valueOf(value: unknown, maxChars: number): string {
  if (value === undefined) return '';
  return shortened(typeof value === 'string' ? value : JSON.stringify(value), maxChars);
}

function shortened(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1)}…`;
}
