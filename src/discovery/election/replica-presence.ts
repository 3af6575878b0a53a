/**
 * No other replica acquires a presence Lease. When it expires, the elected replica removes this replica's WorkloadEntries
 * (src/discovery/registration/orphaned-entries.ts).
 */
import { leases } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';

const prefix = 'istiod-replica-';
/** Random part of an identity, after the pod name. */
const randomPart = /_([0-9a-f][0-9a-f-]{6,34}[0-9a-f])$/;
/** Other programs may have Leases in the namespace. */
const maxLeasesPerPage = 500;
const maxPages = 20;
const listLimitMs = 5_000;

/** `undefined` if the identity does not belong to chartpilot but, for example, to Istio. */
export function presenceLeaseOf(identity: string): string | undefined {
  const [, identityPart] = randomPart.exec(identity) ?? [];
  return identityPart && `${prefix}${identityPart}`;
}

function isPresenceLease(name: string): boolean {
  return name.startsWith(prefix);
}

/**
 * The list must be complete, because a replica without a Lease is assumed to have exited.
 *
 * @throws Error if the API server does not respond, or if there are too many Leases
 */
export async function presenceLeases(
  server: Pick<ApiServer, 'list'>,
  namespace: string,
): Promise<readonly KubernetesObject[]> {
  const signal = AbortSignal.timeout(listLimitMs);
  const foundLeases: KubernetesObject[] = [];
  let next: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const options = { namespace, limit: maxLeasesPerPage, ...(next !== undefined && { continue: next }) };
    const { items, continue: continueToken } = await server.list(leases, options, signal);
    foundLeases.push(...items.filter(({ metadata }) => isPresenceLease(metadata.name)));
    if (continueToken === undefined) return foundLeases;
    next = continueToken;
  }
  throw new Error(
    `namespace ${namespace} has more than ${maxLeasesPerPage * maxPages} Leases, the limit for reading replicas: delete Leases that are not used`,
  );
}
