/** Which endpoints of a service stand behind one cluster (spec/discovery.md §8.3). */
import { isIP } from 'node:net';
import { onceFor } from '../../model/collections/once-for.ts';
import { isSelected } from '../../model/services/label-match.ts';
import type { Endpoint, Port } from '../../model/services/service.ts';
import { isUnixSocket } from '../messages/address.ts';
import { asSent, type HealthSelection } from './health.ts';

export interface EndpointSelection {
  readonly port: Port;
  readonly health: HealthSelection;
  /** Labels of the subset; absent: all endpoints. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Only endpoints of this Kubernetes node; absent: of all. */
  readonly node?: string;
  /** Only endpoints whose proxy takes mutual TLS: what lies behind a cluster in the SNI form. */
  readonly onlyMutualTls?: boolean;
  /** DNS clusters resolve names; EDS takes addresses alone. */
  readonly allowNames?: boolean;
}

/** Endpoints of a port; ports are matched by name because numbers differ from workload to workload. */
export function selectEndpoints(endpoints: readonly Endpoint[], selection: EndpointSelection): readonly Endpoint[] {
  const { node } = selection;
  return ofPort(endpoints, selection.port.name)
    .filter(
      (endpoint) =>
        (node === undefined || endpoint.nodeName === node) &&
        (!selection.onlyMutualTls || endpoint.tlsMode === 'istio') &&
        (selection.allowNames || isUnixSocket(endpoint.address) || isIP(endpoint.address) !== 0) &&
        isSelected(selection.labels ?? {}, endpoint.labels),
    )
    .flatMap((endpoint) => asSent(endpoint, selection.health) ?? []);
}

/** Of fewer each is looked at. */
const manyEndpoints = 1_000;

const byPort = onceFor(
  (endpoints: readonly Endpoint[]): ReadonlyMap<string, readonly Endpoint[]> =>
    Map.groupBy(endpoints, ({ servicePortName }) => servicePortName),
);

/** A service of many ports has all endpoints once for each, and is asked for each port: all of them each time would be the square. */
function ofPort(endpoints: readonly Endpoint[], name: string): readonly Endpoint[] {
  if (endpoints.length >= manyEndpoints) return byPort(endpoints).get(name) ?? [];
  return endpoints.filter(({ servicePortName }) => servicePortName === name);
}
