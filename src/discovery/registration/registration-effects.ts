/** Has the charts of registrations use what knows who is connected. */
import { fromCallback, fromPromise } from 'xstate';
import {
  type EntryAnswer,
  type EntryOrder,
  registrationMachine,
} from '../../../machines/discovery/registration/registration.machine.ts';
import { registrationsMachine } from '../../../machines/discovery/registration/registrations.machine.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

/** @param orphans what the elected replica looks for */
export function registrationsWithEffects(registrations: WorkloadRegistrations, orphans?: { look(): void }) {
  return registrationsMachine.provide({
    actors: {
      watchWorkloads: fromCallback<{ type: never }, undefined>(({ sendBack }) => registrations.watch(sendBack)),
      registration: registrationMachine.provide({
        actors: {
          writeEntry: fromPromise<EntryAnswer, EntryOrder>(({ input, signal }) => registrations.write(input, signal)),
        },
      }),
    },
    actions: {
      forget: (_, { entry }) => registrations.forget(entry),
      lookForOrphans: () => orphans?.look(),
      turnAway: (_, { entry, reason }) => registrations.turnAway(entry, reason),
    },
  });
}
