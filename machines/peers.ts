import type { ActorRef, AnyActorRef, EventObject, Snapshot } from 'xstate';

export type Peer<Event extends EventObject> = ActorRef<Snapshot<unknown>, Event>;

/** Looks up actors by system ID. The result is a target for `sendTo` that accepts only the events of that actor. */
export function peersOf<Inboxes extends Record<keyof Inboxes, EventObject>>() {
  return <Name extends keyof Inboxes & string>(name: Name) =>
    ({ system }: { system: AnyActorRef['system'] }): Peer<Inboxes[Name]> =>
      // biome-ignore lint/plugin: the only place where a name becomes an actor
      system.get(name);
}
