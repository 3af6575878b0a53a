import { supervisorMachine } from '../../../machines/agent/envoy/supervisor.machine.ts';
import type { ActorImplementations } from '../../runtime/actors/effects-of.ts';
import { type RepairEnvironment, repairSharedMemory } from './base-ids/shared-memory.ts';
import type { EnvoyBinaries } from './envoy-binaries.ts';

export interface SupervisorEffects extends ActorImplementations<typeof supervisorMachine, 'epoch' | 'shutdown'> {
  readonly binaries: EnvoyBinaries;
  readonly newest: RepairEnvironment;
}

export function supervisorWithEffects({ epoch, shutdown, binaries, newest }: SupervisorEffects) {
  return supervisorMachine.provide({
    actors: { epoch, shutdown, repair: repairSharedMemory(newest) },
    actions: {
      pruneBinaries: ({ context: { desired, provenBinary, epochs } }) =>
        binaries.closeExcept(new Set([desired.binary, provenBinary, ...epochs.map(({ binary }) => binary)])),
    },
  });
}
