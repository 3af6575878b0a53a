import { fromPromise } from 'xstate';
import {
  type EntryOrder,
  type EntryResult,
  registrationMachine,
} from '../../../machines/discovery/registration/registration.machine.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export function registrationWithEffects(registrations: WorkloadRegistrations) {
  return registrationMachine.provide({
    actors: {
      writeEntry: fromPromise<EntryResult, EntryOrder>(({ input, signal }) => registrations.write(input, signal)),
    },
  });
}
