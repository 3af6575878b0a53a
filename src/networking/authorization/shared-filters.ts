/** Filters that are made of nothing but AuthorizationPolicies and the mesh's settings: made once for all who have the same. */
import { onceFor } from '../../model/collections/once-for.ts';
import { setBounded } from '../../model/collections/set-bounded.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import type { ProxyContext } from '../inputs/connection-context.ts';
import type { TypedExtension } from '../messages/any.ts';

/** All that such a filter may read. */
export interface PoliciesContext {
  readonly policies: Pick<WorkloadPolicies, 'authorizationPolicies'>;
  readonly push: Pick<PushContext, 'mesh'>;
}

type Policies = WorkloadPolicies['authorizationPolicies'];

/**
 * Lists of policies whose filters are kept. They may be large, and each listener has a copy: where every workload has a list of
 * its own nothing is gained by keeping more.
 */
const mostLists = 16;

/** @param make called once for a list of policies while it is among those that were asked for last */
export function sharedByPolicies(
  make: (context: PoliciesContext) => readonly TypedExtension[],
): (context: ProxyContext) => readonly TypedExtension[] {
  const known = onceFor((_: PushContext['mesh']) => new Map<Policies, readonly TypedExtension[]>());
  return ({ policies: { authorizationPolicies }, push: { mesh } }) => {
    if (authorizationPolicies.length === 0) return [];
    const ofMesh = known(mesh);
    let filters = ofMesh.get(authorizationPolicies);
    if (filters === undefined) {
      filters = make({ policies: { authorizationPolicies }, push: { mesh } });
      setBounded(ofMesh, authorizationPolicies, filters, mostLists);
    }
    return filters;
  };
}
