/** What XState's types do not tell of an actor system: how an event is delivered in somebody's name. */
import type { AnyActorRef, AnyEventObject } from 'xstate';

/**
 * Delivers an event in a sender's name, so that a trace tells who sent it; it may be of another system. `send` of an actor
 * that is no machine's would say "from outside".
 */
export function relay(source: AnyActorRef | undefined, target: AnyActorRef, event: AnyEventObject): void {
  const system = target.system as AnyActorRef['system'] & {
    _relay(source: AnyActorRef | undefined, target: AnyActorRef, event: AnyEventObject): void;
  };
  system._relay(source, target, event);
}
