/** What XState's types do not tell of an actor system: how its timers look to a scheduler, and how an event is delivered. */
import type { AnyActorRef, AnyEventObject } from 'xstate';

/** What a scheduler is told to send, and when. */
export interface ArmedTimer {
  readonly at: number;
  readonly id: string;
  readonly source: AnyActorRef;
  readonly target: AnyActorRef;
  readonly event: AnyEventObject;
}

/** Delivers an event in a sender's name; it may be of another system. */
export function relay(source: AnyActorRef | undefined, target: AnyActorRef, event: AnyEventObject): void {
  const system = target.system as AnyActorRef['system'] & {
    _relay(source: AnyActorRef | undefined, target: AnyActorRef, event: AnyEventObject): void;
  };
  system._relay(source, target, event);
}
