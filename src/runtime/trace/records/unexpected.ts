import type { AnyActorRef, AnyStateNode } from 'xstate';
import { matchesDescriptor } from '../event-descriptor.ts';
import type { RecorderContext } from './record-context.ts';

interface ActiveSnapshot {
  readonly _nodes?: readonly AnyStateNode[];
}

/** Records a diagnostic: no active state of the chart declares a transition for the event. */
export function recordUnexpectedEvent(
  { actors, omitted, record }: RecorderContext,
  ref: AnyActorRef,
  snapshot: object,
  eventType: string,
): void {
  const actor = actors.of(ref);
  if (actor.machine === undefined || eventType.startsWith('xstate.') || omitted.has(eventType)) return;
  if (((snapshot as ActiveSnapshot)._nodes ?? []).some((node) => declaresEvent(node, eventType))) return;
  record({ kind: 'unexpected', actor: actor.name, on: eventType, state: actor.state, ...actors.causeOf(ref) });
}

/** Includes transitions that ignore the event, and guarded ones whose guard is false. */
function declaresEvent({ transitions }: AnyStateNode, type: string): boolean {
  return transitions.has(type) || [...transitions.keys()].some((descriptor) => matchesDescriptor(type, descriptor));
}
