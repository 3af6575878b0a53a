import type { AnyActorRef } from 'xstate';
import { actorName, machineOf } from '../known-actors.ts';
import type { Recording } from './record-context.ts';

/** An actor was made. */
export function recordSpawn({ actors, record }: Recording, ref: AnyActorRef): void {
  const parent = ref._parent;
  const machine = machineOf(ref);
  const { input } = (ref as AnyActorRef & { options?: { input?: unknown } }).options ?? {};
  const spawned = record({
    kind: 'spawn',
    actor: actorName(ref),
    ...(parent !== undefined && { parent: actorName(parent) }),
    ...(machine !== undefined && { machine: machine.id }),
    ...(input !== undefined && { input }),
    ...actors.causeOf(parent),
  });
  actors.add(ref, spawned);
}
