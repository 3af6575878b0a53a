/** What XState's types do not tell of an actor system: how its timers look to a scheduler. */
import type { AnyActorRef, AnyEventObject } from 'xstate';

/** What a scheduler is told to send, and when. */
export interface ArmedTimer {
  readonly at: number;
  readonly id: string;
  readonly source: AnyActorRef;
  readonly target: AnyActorRef;
  readonly event: AnyEventObject;
}
