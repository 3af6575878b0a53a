import { discoveryMachine } from './discovery.machine.ts';
import { adsConnectionMachine } from './xds/ads-connection.machine.ts';
import { memoryReleaseMachine } from './xds/memory-release.machine.ts';
import { streamAdmissionMachine } from './xds/stream-admission.machine.ts';

/** Machines that `pilot-discovery` starts; these start all others. */
export const discoveryProgramMachines = [
  discoveryMachine,
  adsConnectionMachine,
  streamAdmissionMachine,
  memoryReleaseMachine,
] as const;
