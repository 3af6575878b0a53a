/** Whether endpoints are the same, so that what did not change keeps its identity from one moment to the next. */
import { sameItems } from '../collections/same-items.ts';
import type { Endpoint } from './service.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * By a chain and not by a table of fields, which takes five times as long: thousands are compared for one that changed. No
 * field can be forgotten all the same: same-endpoint.test.ts does not compile without each, and changes each.
 */
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

/** The list with those of the last one in the place of equal ones, and the last one itself when all are equal. */
export function keptEndpoints(list: readonly Endpoint[], before: readonly Endpoint[] = []): readonly Endpoint[] {
  if (list === before || (list.length === 0 && before.length === 0)) return before;
  // Mostly each is where it was: only where one is not, its place is looked for.
  let places: Map<string, Endpoint> | undefined;
  const kept = list.map((endpoint, index) => {
    const there = before[index];
    if (there !== undefined && isSameId(there, endpoint)) return sameEndpoint(there, endpoint) ? there : endpoint;
    places ??= new Map(before.map((one) => [endpointId(one), one]));
    const same = places.get(endpointId(endpoint));
    return same !== undefined && sameEndpoint(same, endpoint) ? same : endpoint;
  });
  if (sameItems(kept, before)) return before;
  // Lists that several services share stay one list.
  return sameItems(kept, list) ? list : kept;
}

/** Which endpoint it is, whatever else it says (§5.2). */
export function endpointId(endpoint: EndpointId): string {
  return `${endpoint.address}|${endpoint.servicePortName}|${endpoint.port}`;
}

type EndpointId = Pick<Endpoint, 'address' | 'servicePortName' | 'port'>;

/** Whether they are the same one, whatever else they say. */
export function isSameId(a: EndpointId, b: EndpointId): boolean {
  return a.address === b.address && a.servicePortName === b.servicePortName && a.port === b.port;
}
