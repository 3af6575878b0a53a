/** Effects of the chart `registration`: writes the WorkloadEntry of one workload. */
import { fromPromise } from 'xstate';
import {
  type EntryAnswer,
  type EntryOrder,
  registrationMachine,
} from '../../../machines/discovery/registration/registration.machine.ts';
import type { WorkloadRegistrations } from './workload-registrations.ts';

export function registrationWithEffects(registrations: WorkloadRegistrations) {
  return registrationMachine.provide({
    actors: {
      writeEntry: fromPromise<EntryAnswer, EntryOrder>(({ input, signal }) => registrations.write(input, signal)),
    },
  });
}
