/**
 * That this replica lives: a Lease of its own, which it alone stands for, and renews as any other. When it is renewed no more, what the replica
 * has left behind is somebody else's to clear away (src/discovery/registration/orphaned-entries.ts). Whoever has it
 * writes what its own proxies reject (status/distribution-status.ts).
 */
import { leases } from '../kubernetes/api-resource.ts';
import type { ApiServer, KubernetesObject } from '../kubernetes/api-server.ts';

const prefix = 'istiod-replica-';
/** The part by chance of an identity, behind the name of its pod. */
const ownPart = /_([0-9a-f][0-9a-f-]{6,34}[0-9a-f])$/;
/** Other programs may have Leases in the namespace. */
const maxLeasesPerPage = 500;
const maxPages = 20;
const listLimitMs = 5_000;

/** The name of a replica's Lease; undefined: this is no replica of ours, as one of Istio's own. */
export function presenceLeaseOf(identity: string): string | undefined {
  const [, part] = ownPart.exec(identity) ?? [];
  return part && `${prefix}${part}`;
}

function isPresenceLease(name: string): boolean {
  return name.startsWith(prefix);
}

/**
 * The presence Leases of all replicas in a namespace. One that is missing because it is on a later page would be taken for a dead replica.
 *
 * @throws Error if the API server does not respond, or there are more Leases than pages
 */
export async function presenceLeases(
  server: Pick<ApiServer, 'list'>,
  namespace: string,
): Promise<readonly KubernetesObject[]> {
  const signal = AbortSignal.timeout(listLimitMs);
  const found: KubernetesObject[] = [];
  let next: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const options = { namespace, limit: maxLeasesPerPage, ...(next !== undefined && { continue: next }) };
    const { items, continue: after } = await server.list(leases, options, signal);
    found.push(...items.filter(({ metadata }) => isPresenceLease(metadata.name)));
    if (after === undefined) return found;
    next = after;
  }
  throw new Error(
    `namespace ${namespace} has more than ${maxLeasesPerPage * maxPages} Leases, the limit for reading replicas: delete Leases that are not used`,
  );
}
