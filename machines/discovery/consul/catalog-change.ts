/**
 * Whether a response of Consul may remove served services. Consul responds with an empty list and status 200 if an ACL denies access, if a
 * server lost its data, and during a change of the leader.
 */

export interface CatalogReading {
  /** A server with data lists at least itself. */
  nodes: number;
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

const minServicesOfLargeLoss = 4;

/** Why the complete catalog must not be applied without a confirmation; `undefined` if it may. */
export function holdReason(
  appliedReading: CatalogReading | null,
  nextReading: CatalogReading,
  cause: ReadCause,
): string | undefined {
  const { services, instances, restricted } = nextReading;
  if (cause === 'accepted') return undefined;
  if (nextReading.nodes === 0) return `the response lists no nodes${restrictionText(restricted)}`;
  if (appliedReading === null) {
    return services === 0 && restricted ? `the response lists no services${restrictionText(restricted)}` : undefined;
  }
  if (services === 0 && appliedReading.services > 0) {
    return `the response would remove all ${appliedReading.services} services${restrictionText(restricted)}`;
  }
  if (cause === 'growth') return undefined;
  const isLargeChange =
    appliedReading.services >= minServicesOfLargeLoss &&
    (services * 2 < appliedReading.services || instances * 2 < appliedReading.instances);
  return isLargeChange
    ? `the response would leave ${services} of ${appliedReading.services} services and ${instances} of ${appliedReading.instances} instances (read because of: ${cause})${restrictionText(restricted)}`
    : undefined;
}

/**
 * Whether the complete catalog must be read before a change applies: each blocking query returns a part, and an ACL hides the catalog part by part.
 */
export function needsWholeRead(appliedReading: CatalogReading, nextReading: CatalogReading): boolean {
  return (
    nextReading.nodes === 0 ||
    (nextReading.services === 0 && appliedReading.services > 0) ||
    (nextReading.restricted && (!appliedReading.restricted || nextReading.emptied > 0))
  );
}

function restrictionText(isRestricted: boolean): string {
  return isRestricted ? '; ACLs hide results from this token' : '';
}
