import type { AnyActorRef, AnyMachineSnapshot, EventObject } from 'xstate';

/**
 * @returns `undefined` if the machine takes a transition with a target or actions. Otherwise the description of the transition that ignores the
 * event.
 */
export function rejectionOf(actor: AnyActorRef | undefined, event: EventObject): string | undefined {
  const snapshot = actor?.getSnapshot() as AnyMachineSnapshot | undefined;
  if (snapshot?.status !== 'active') return 'The component is not running.';
  if (snapshot.can(event)) return undefined;
  const [transition] = snapshot.machine.getTransitionData(snapshot, event) ?? [];
  return transition?.description ?? 'The current state ignores this request.';
}
