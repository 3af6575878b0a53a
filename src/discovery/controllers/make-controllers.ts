/** Controllers: writes of the elected replica to a cluster, and the actor of the elections. */
import type { ConfigSet } from '../../model/config/config-set.ts';
import { ClusterWrites, type ClusterWritesOptions } from './cluster-writes.ts';
import { StatusInputs } from './status/status-inputs.ts';

export interface ControllersParts extends Omit<ClusterWritesOptions, 'statusInputs'> {
  /** Whether all sources have been read; no status is written before. */
  readonly isWhole: () => boolean;
  readonly objects: () => ConfigSet;
}

export function makeControllers({ isWhole, objects, ...parts }: ControllersParts) {
  const statusInputs = new StatusInputs({ isComplete: isWhole, objects, settings: parts.mesh });
  const writes = new ClusterWrites({ ...parts, statusInputs });
  return {
    writes,
    /** Objects or settings from which statuses are derived may have changed. */
    inputsChanged: statusInputs.changed,
    actors: () => ({ elections: writes.elections.machine() }),
  };
}
