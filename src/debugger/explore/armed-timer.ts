/** Internals of an XState actor system that its types do not declare: the timers that a scheduler receives. */
import type { AnyActorRef, AnyEventObject } from 'xstate';

export interface ArmedTimer {
  readonly at: number;
  readonly id: string;
  readonly source: AnyActorRef;
  readonly target: AnyActorRef;
  readonly event: AnyEventObject;
}
