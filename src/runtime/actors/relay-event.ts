/** What XState's types do not tell of an actor system: how an event is delivered in somebody's name. */
import type { AnyActorRef, EventObject } from 'xstate';
import type { Peer } from '../../../machines/peers.ts';

/**
 * Delivers an event in a sender's name, so that a trace tells who sent it; it may be of another system. `send` of an actor
 * that is no machine's would say "from outside".
 *
 * @param target undefined: whom a name meant is not there, at the start or at the end
 */
export function relay<Event extends EventObject>(
  source: AnyActorRef | undefined,
  target: Peer<Event> | undefined,
  event: NoInfer<Event>,
): void {
  if (target === undefined) return;
  const system = target.system as AnyActorRef['system'] & {
    _relay(source: AnyActorRef | undefined, target: Peer<Event>, event: Event): void;
  };
  system._relay(source, target, event);
}
