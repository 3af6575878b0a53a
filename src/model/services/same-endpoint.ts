/** Unchanged endpoints keep their identity between states. */
import { sameItems } from '../collections/same-items.ts';
import type { Endpoint } from './service.ts';

type Labels = Readonly<Record<string, string>>;

/** A chain of conditions is five times as fast as a loop over a table of fields. same-endpoint.test.ts checks that no field is missing. */
export function sameEndpoint(a: Endpoint, b: Endpoint): boolean {
  return (
    a === b ||
    (a.address === b.address &&
      a.port === b.port &&
      a.servicePortName === b.servicePortName &&
      a.health === b.health &&
      a.weight === b.weight &&
      a.serviceAccount === b.serviceAccount &&
      a.network === b.network &&
      a.locality === b.locality &&
      a.clusterId === b.clusterId &&
      a.tlsMode === b.tlsMode &&
      a.namespace === b.namespace &&
      a.workloadName === b.workloadName &&
      a.nodeName === b.nodeName &&
      a.hostname === b.hostname &&
      a.subdomain === b.subdomain &&
      sameLabels(a.labels, b.labels))
  );
}

export function sameLabels(a: Labels, b: Labels): boolean {
  if (a === b) return true;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** Replaces endpoints by equal previous objects; returns the previous list if all are equal. */
export function reuseEndpoints(
  endpoints: readonly Endpoint[],
  previous: readonly Endpoint[] = [],
): readonly Endpoint[] {
  if (endpoints === previous || (endpoints.length === 0 && previous.length === 0)) return previous;
  // Usually every endpoint is at the same index; the others are looked up by ID.
  let previousById: Map<string, Endpoint> | undefined;
  const reusedEndpoints = endpoints.map((endpoint, index) => {
    const previousAtIndex = previous[index];
    if (previousAtIndex !== undefined && areIdsEqual(previousAtIndex, endpoint))
      return sameEndpoint(previousAtIndex, endpoint) ? previousAtIndex : endpoint;
    previousById ??= new Map(previous.map((previousEndpoint) => [endpointId(previousEndpoint), previousEndpoint]));
    const sameIdEndpoint = previousById.get(endpointId(endpoint));
    return sameIdEndpoint !== undefined && sameEndpoint(sameIdEndpoint, endpoint) ? sameIdEndpoint : endpoint;
  });
  if (sameItems(reusedEndpoints, previous)) return previous;
  // If unchanged, returns the given list, which several services may share.
  return sameItems(reusedEndpoints, endpoints) ? endpoints : reusedEndpoints;
}

export function endpointId(endpoint: EndpointId): string {
  return `${endpoint.address}|${endpoint.servicePortName}|${endpoint.port}`;
}

type EndpointId = Pick<Endpoint, 'address' | 'servicePortName' | 'port'>;

export function areIdsEqual(a: EndpointId, b: EndpointId): boolean {
  return a.address === b.address && a.servicePortName === b.servicePortName && a.port === b.port;
}
