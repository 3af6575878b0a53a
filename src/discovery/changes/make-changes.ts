import type { MeshConfigs } from '../config/snapshots/mesh-configs.ts';
import type { MeshState } from '../push/contexts/mesh-state.ts';
import type { FollowedObjects } from '../registry/followed-objects.ts';
import { ChangeHistory } from './change-history.ts';

/** @param workloads objects that only the registry reads; `undefined` without a cluster */
export function makeChanges(workloads: Pick<FollowedObjects, 'get'> | undefined) {
  const history = new ChangeHistory(workloads && { objectOf: (key) => workloads.get(key) });
  return {
    history,
    follow: (state: MeshState, configs: MeshConfigs): void => {
      configs.onChanges((changes) => {
        if (changes.length > 0) history.recordConfigChange();
      });
      state.onReported(({ events }) => history.recordEvents(events));
      state.onPublished((publication) => history.recordPublication(publication));
    },
  };
}
