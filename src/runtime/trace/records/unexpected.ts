import type { AnyActorRef, AnyStateNode } from 'xstate';
import { matchesDescriptor } from '../event-descriptor.ts';
import type { RecorderContext } from './record-context.ts';

interface Active {
  readonly _nodes?: readonly AnyStateNode[];
}

/** Records a diagnostic: no active state of the chart declares a transition for the event. */
export function recordUnexpected(
  { actors, omitted, record }: RecorderContext,
  ref: AnyActorRef,
  snapshot: object,
  on: string,
): void {
  const actor = actors.of(ref);
  if (actor.machine === undefined || on.startsWith('xstate.') || omitted.has(on)) return;
  if (((snapshot as Active)._nodes ?? []).some((node) => declares(node, on))) return;
  record({ kind: 'unexpected', actor: actor.name, on, state: actor.state, ...actors.causeOf(ref) });
}

/** Includes transitions that ignore the event, and guarded ones whose guard is false. */
function declares({ transitions }: AnyStateNode, type: string): boolean {
  return transitions.has(type) || [...transitions.keys()].some((descriptor) => matchesDescriptor(type, descriptor));
}
