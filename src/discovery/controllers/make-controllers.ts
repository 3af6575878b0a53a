import type { ConfigSet } from '../../model/config/config-set.ts';
import { ClusterWrites, type ClusterWritesOptions } from './cluster-writes.ts';
import { StatusInputs } from './status/status-inputs.ts';

export interface ControllersParts extends Omit<ClusterWritesOptions, 'statusInputs'> {
  /** Whether all sources have been read. No status is written before. */
  readonly isComplete: () => boolean;
  readonly objects: () => ConfigSet;
}

export function makeControllers({ isComplete, objects, ...controllerParts }: ControllersParts) {
  const statusInputs = new StatusInputs({ isComplete, objects, settings: controllerParts.mesh });
  const clusterWrites = new ClusterWrites({ ...controllerParts, statusInputs });
  return {
    writes: clusterWrites,
    inputsChanged: statusInputs.notifyChanged,
    actors: () => ({ elections: clusterWrites.elections.machine() }),
  };
}
