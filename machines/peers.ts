import type { ActorRef, AnyActorRef, EventObject, Snapshot } from 'xstate';

/** An actor of which only the accepted events are known. */
export type Peer<Event extends EventObject> = ActorRef<Snapshot<unknown>, Event>;

/**
 * Looks up actors by system ID, with the events that each accepts. The result is the target of a `sendTo`, which then
 * accepts no other event.
 */
export function peersOf<Inboxes extends Record<keyof Inboxes, EventObject>>() {
  return <Name extends keyof Inboxes & string>(name: Name) =>
    ({ system }: { system: AnyActorRef['system'] }): Peer<Inboxes[Name]> =>
      // biome-ignore lint/plugin: the one place where a name becomes an actor
      system.get(name);
}
