import type { Recorder } from './actor-system.ts';
import type { Logger } from './log.ts';
import type { TracedEvent, TraceRecord } from './trace.ts';

/** What of an event is worth a place in a log line: short facts, in the order of the event's fields. */
function facts(event: TracedEvent): string {
  return Object.entries(event)
    .filter(([key, value]) => key !== 'type' && (typeof value === 'string' || typeof value === 'number'))
    .map(
      ([key, value]) => `${key}=${typeof value === 'string' && value.length > 24 ? `${value.slice(0, 12)}…` : value}`,
    )
    .join(' ');
}

const isTrouble = (type: string): boolean => /\.(failed|rejected|waiting|overdue|drain-failed)$/.test(type);

/**
 * Turns a program's trace into its log: one line for each state that a chart enters, and one for each event that tells
 * of trouble, with its reason in full. `hidden` says which actors are too many or too busy for that.
 *
 * @returns how to stop.
 */
export function narrate(recorder: Recorder, log: Logger, hidden: (actor: string) => boolean = () => false): () => void {
  let cause: TraceRecord | undefined;
  return recorder.observe((record) => {
    switch (record.kind) {
      case 'event':
        cause = record;
        if (isTrouble(record.event.type) && !record.from.includes('/') && !hidden(record.from)) {
          const { type, reason, ...rest } = record.event;
          log.scope(record.from).warn(`${type}: ${reason ?? facts(record.event)}`, rest);
        }
        break;
      case 'timer':
        cause = record;
        break;
      case 'transition':
        if (record.from !== '' && !hidden(record.actor)) {
          log.scope(record.actor).info(`${record.from} → ${record.to}  (${because(record.cause, cause)})`);
        }
        break;
      case 'stop':
        if (record.status === 'error') log.scope(record.actor).error(`failed: ${record.error ?? 'no reason given'}`);
        break;
    }
  });
}

/** The event as it was delivered, where it is the one that the transition names. */
function because(type: string, last: TraceRecord | undefined): string {
  if (type.startsWith('xstate.after.')) return `after ${type.split('.')[2]}`;
  if (type.startsWith('xstate.done.actor.')) return `${type.slice('xstate.done.actor.'.length)} done`;
  if (type.startsWith('xstate.error.actor.')) return `${type.slice('xstate.error.actor.'.length)} failed`;
  if (last?.kind !== 'event' || last.event.type !== type) return type;
  return [type, facts(last.event)].filter(Boolean).join(' ');
}
