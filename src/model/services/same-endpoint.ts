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
  const old = new Map(before.map((endpoint) => [endpointId(endpoint), endpoint]));
  const kept = list.map((endpoint) => {
    const same = old.get(endpointId(endpoint));
    return same !== undefined && sameEndpoint(same, endpoint) ? same : endpoint;
  });
  return sameItems(kept, before) ? before : kept;
}

/** Which endpoint it is, whatever else it says (§5.2). */
export function endpointId(endpoint: Pick<Endpoint, 'address' | 'servicePortName' | 'port'>): string {
  return `${endpoint.address}|${endpoint.servicePortName}|${endpoint.port}`;
}
