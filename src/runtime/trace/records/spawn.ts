import type { AnyActorRef } from 'xstate';
import { machineOf } from '../known-actors.ts';
import type { RecorderContext } from './record-context.ts';

export function recordSpawn({ actors, record, data }: RecorderContext, ref: AnyActorRef): void {
  const parent = ref._parent;
  const machine = machineOf(ref);
  const { input, snapshot } =
    (ref as AnyActorRef & { options?: { input?: unknown; snapshot?: unknown } }).options ?? {};
  const spawnRecord = record({
    kind: 'spawn',
    actor: actors.nameOf(ref),
    ...(parent !== undefined && { parent: actors.nameOf(parent) }),
    ...(machine !== undefined && { machine: machine.id }),
    ...(input !== undefined && { input: data(input) }),
    ...(snapshot !== undefined && parent === undefined && { restored: true as const }),
    ...actors.causeOf(parent),
  });
  actors.add(ref, spawnRecord);
}
