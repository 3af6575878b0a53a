import type { AnyActorRef, EventObject } from 'xstate';
import type { Peer } from '../../../machines/peers.ts';

/**
 * Delivers an event with its sender, so that a trace shows the sender; `send` of an actor that is not a machine would be recorded as "from outside".
 * The sender may belong to another actor system.
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
