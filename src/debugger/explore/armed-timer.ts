/** Internals of an XState actor system that its types do not declare: the timers that a scheduler gets. */
import type { AnyActorRef, AnyEventObject } from 'xstate';

/** The event that a scheduler must send, and when. */
export interface ArmedTimer {
  readonly at: number;
  readonly id: string;
  readonly source: AnyActorRef;
  readonly target: AnyActorRef;
  readonly event: AnyEventObject;
}
