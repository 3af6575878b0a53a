import type { AnyActorRef, AnyStateNode } from 'xstate';
import { matchesDescriptor } from '../event-descriptor.ts';
import type { Recording } from './record-context.ts';

/** A machine's snapshot, as far as it tells which states are active. */
interface Active {
  readonly _nodes?: readonly AnyStateNode[];
}

/** A diagnostic: no active state of the chart has a word for the event that came. */
export function recordUnexpected(
  { actors, omitted, record }: Recording,
  ref: AnyActorRef,
  snapshot: object,
  on: string,
): void {
  const actor = actors.of(ref);
  if (actor.machine === undefined || on.startsWith('xstate.') || omitted.has(on)) return;
  if (((snapshot as Active)._nodes ?? []).some((node) => speaksOf(node, on))) return;
  record({ kind: 'unexpected', actor: actor.name, on, state: actor.state, ...actors.causeOf(ref) });
}

/** Also where it says that the event is ignored, or takes it on a condition that does not hold. */
function speaksOf({ transitions }: AnyStateNode, type: string): boolean {
  return transitions.has(type) || [...transitions.keys()].some((descriptor) => matchesDescriptor(type, descriptor));
}
