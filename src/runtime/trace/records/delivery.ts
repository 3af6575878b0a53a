import type { AnyActorRef } from 'xstate';
import { timerName } from '../statechart.ts';
import type { TracedEvent } from '../trace.ts';
import type { RecorderContext } from './record-context.ts';

export function recordDelivery(
  { actors, omitted, record, data }: RecorderContext,
  target: AnyActorRef,
  from: AnyActorRef | undefined,
  event: TracedEvent,
): void {
  const receiver = actors.of(target);
  if (event.type === 'xstate.init') {
    // The parent may have sent an event before the actor started, and the start is processed first.
    if (receiver.machine !== undefined) receiver.inbox.unshift({ event, seq: receiver.spawnSeq });
    return;
  }
  if (omitted.has(event.type)) {
    if (receiver.machine !== undefined) receiver.inbox.push({ event, seq: 0 });
    return;
  }
  const timer = timerName(event.type);
  if (timer !== undefined) {
    receiver.inbox.push({ event, seq: record({ kind: 'timer', actor: receiver.name, timer }) });
    return;
  }
  const isDelivered = target.getSnapshot()?.status === 'active';
  const eventRecord = record({
    kind: 'event',
    from: from === undefined ? 'outside' : actors.of(from).name,
    to: receiver.name,
    event: withErrorMessage(data(event) as TracedEvent),
    ...(!isDelivered && { undelivered: true }),
    ...actors.causeOf(from),
  });
  if (receiver.machine !== undefined && isDelivered) receiver.inbox.push({ event, seq: eventRecord });
}

/** Keeps the message of an Error object, which JSON shows as `{}`. */
function withErrorMessage(event: TracedEvent): TracedEvent {
  return event.error instanceof Error ? { ...event, error: event.error.message } : event;
}
