/**
 * Applies EnvoyFilter patches, the last step of every generator. Returns the same array without patches, and the same
 * resource if no patch changes it.
 */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { EnvoyResource } from '../messages/resource.ts';
import { patchedClusters } from './clusters.ts';
import { withExtensions } from './extensions.ts';
import { patchedListeners } from './listeners.ts';
import { patchSetOf } from './patch-set.ts';
import { patchedRoutes } from './routes.ts';

export type PatchedType = 'CDS' | 'LDS' | 'RDS' | 'ECDS';

/** @param names requested names, for types requested by name */
export function applyEnvoyFilters(
  type: PatchedType,
  resources: EnvoyResource[],
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[] = [],
): EnvoyResource[] {
  const patches = patchSetOf(shape, push);
  if (patches === undefined) return resources;
  switch (type) {
    case 'CDS':
      return patchedClusters(resources, patches, shape, push);
    case 'LDS':
      return patchedListeners(resources, patches);
    case 'RDS':
      return patchedRoutes(resources, patches, shape, push);
    case 'ECDS':
      return withExtensions(resources, names, patches);
  }
}
