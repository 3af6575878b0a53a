/**
 * Whether a response of Consul may remove served services. Consul responds with an empty list and status 200 if an ACL denies access, if a
 * server lost its data, and during a change of the leader.
 */

export interface CatalogReading {
  /** Nodes of the datacenter. A server with data lists at least itself. */
  nodes: number;
  /** Services of the mesh. */
  services: number;
  instances: number;
  /** Whether the token may not see all objects: results were filtered by ACLs, or the default policy is `deny` and there is no token. */
  restricted: boolean;
  /** Number of nodes or services that lost all instances in this read. */
  emptied: number;
}

/**
 * Why the complete catalog is read. With `growth` (more nodes than connections), server and token are known to be valid, so a large part may be
 * removed at once. With `accepted`, an operator confirmed that all services may be removed.
 */
export type ReadCause = 'start' | 'reconnect' | 'lower index' | 'new credentials' | 'loss' | 'growth' | 'accepted';

/** A catalog with fewer services may lose most of them at once. */
const minServicesOfLargeLoss = 4;

/**
 * Why the complete catalog must not be applied without a confirmation; `undefined` if it may.
 *
 * @param applied the served catalog; null before the first read
 */
export function alarmOf(applied: CatalogReading | null, reading: CatalogReading, cause: ReadCause): string | undefined {
  const { services, instances, restricted } = reading;
  if (cause === 'accepted') return undefined;
  if (reading.nodes === 0) return `the response lists no nodes${because(restricted)}`;
  if (applied === null) {
    return services === 0 && restricted ? `the response lists no services${because(restricted)}` : undefined;
  }
  if (services === 0 && applied.services > 0) {
    return `the response would remove all ${applied.services} services${because(restricted)}`;
  }
  if (cause === 'growth') return undefined;
  const isLarge =
    applied.services >= minServicesOfLargeLoss &&
    (services * 2 < applied.services || instances * 2 < applied.instances);
  return isLarge
    ? `the response would leave ${services} of ${applied.services} services and ${instances} of ${applied.instances} instances (read because of: ${cause})${because(restricted)}`
    : undefined;
}

/**
 * Whether the complete catalog must be read before a change applies: each blocking query returns a part, and an ACL hides the catalog part by part.
 */
export function needsWholeRead(applied: CatalogReading, reading: CatalogReading): boolean {
  return (
    reading.nodes === 0 ||
    (reading.services === 0 && applied.services > 0) ||
    (reading.restricted && (!applied.restricted || reading.emptied > 0))
  );
}

function because(restricted: boolean): string {
  return restricted ? '; ACLs hide results from this token' : '';
}
