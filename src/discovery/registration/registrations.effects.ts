import { fromCallback } from 'xstate';
import { registrationsMachine } from '../../../machines/discovery/registration/registrations.machine.ts';
import { registrationWithEffects } from './registration.effects.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export function registrationsWithEffects(registrations: WorkloadRegistrations, orphans?: { check(): void }) {
  return registrationsMachine.provide({
    actors: {
      watchWorkloads: fromCallback<{ type: never }, undefined>(({ sendBack }) => registrations.watch(sendBack)),
      registration: registrationWithEffects(registrations),
    },
    actions: {
      releaseWorkload: (_, { entry }) => registrations.remove(entry),
      findOrphans: () => orphans?.check(),
      closeConnections: (_, { entry, reason }) => registrations.rejectWorkload(entry, reason),
    },
  });
}
