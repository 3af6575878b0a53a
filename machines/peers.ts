import type { ActorRef, AnyActorRef, EventObject, Snapshot } from 'xstate';

/** An actor of which is known what it may be sent, and nothing else. */
export type Peer<Event extends EventObject> = ActorRef<Snapshot<unknown>, Event>;

/**
 * For a side's actors that are spoken to by name: what each of them takes. The lookup is the target of a `sendTo`, which
 * then takes no other event.
 */
export function peersOf<Inboxes extends Record<keyof Inboxes, EventObject>>() {
  return <Name extends keyof Inboxes & string>(name: Name) =>
    ({ system }: { system: AnyActorRef['system'] }): Peer<Inboxes[Name]> =>
      // biome-ignore lint/plugin: the one place where a name becomes an actor
      system.get(name);
}
