/** Proxies with the same policies and mesh settings share the filters. */
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import type { ProxyContext } from '../inputs/connection-context.ts';
import type { TypedExtension } from '../messages/any.ts';

export interface PoliciesContext {
  readonly policies: Pick<WorkloadPolicies, 'authorizationPolicies'>;
  readonly push: Pick<PushContext, 'mesh'>;
}

type Policies = WorkloadPolicies['authorizationPolicies'];

/** Maximum number of cached policy lists. If every workload has a different list, a larger cache has no benefit. */
const maxLists = 16;

/** @param build called once for each recently used policy list */
export function sharedByPolicies(
  build: (context: PoliciesContext) => readonly TypedExtension[],
): (context: ProxyContext) => readonly TypedExtension[] {
  const filtersByMesh = memoizeByObject((_: PushContext['mesh']) => new Map<Policies, readonly TypedExtension[]>());
  return ({ policies: { authorizationPolicies }, push: { mesh } }) => {
    if (authorizationPolicies.length === 0) return [];
    const filtersByPolicies = filtersByMesh(mesh);
    let filters = filtersByPolicies.get(authorizationPolicies);
    if (filters === undefined) {
      filters = build({ policies: { authorizationPolicies }, push: { mesh } });
      setBounded(filtersByPolicies, authorizationPolicies, filters, maxLists);
    }
    return filters;
  };
}
