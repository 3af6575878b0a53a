import { discoveryMachine } from './discovery.machine.ts';
import { adsConnectionMachine } from './xds/ads-connection.machine.ts';
import { streamAdmissionMachine } from './xds/stream-admission.machine.ts';

/** The machines that `pilot-discovery` starts itself; these machines start the others. A trace of the program contains the charts of all of them. */
export const discoveryProgramMachines = [discoveryMachine, adsConnectionMachine, streamAdmissionMachine] as const;
