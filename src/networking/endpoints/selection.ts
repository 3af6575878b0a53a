/** Selects the endpoints of a service that belong to a cluster (spec/discovery.md §8.3). */
import { isIP } from 'node:net';
import { onceFor } from '../../model/collections/once-for.ts';
import { isSelected } from '../../model/services/label-match.ts';
import type { Endpoint, Port } from '../../model/services/service.ts';
import { isUnixSocket } from '../messages/address.ts';
import { type HealthSelection, healthOf, withSentHealth } from './health.ts';
import type { OmissionReason } from './omission.ts';

export interface EndpointSelection {
  readonly port: Port;
  readonly health: HealthSelection;
  /** Labels of the subset, absent for all endpoints. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Only endpoints of this Kubernetes node, all if absent. */
  readonly node?: string;
  /** Only endpoints whose proxy accepts mutual TLS, for a cluster in the SNI form. */
  readonly onlyMutualTls?: boolean;
  /** DNS clusters resolve host names, EDS accepts only addresses. */
  readonly allowNames?: boolean;
}

/** Endpoints of a port. Ports match by name, because numbers differ between workloads. */
export function selectEndpoints(endpoints: readonly Endpoint[], selection: EndpointSelection): readonly Endpoint[] {
  return ofPort(endpoints, selection.port.name).flatMap((endpoint) =>
    unsuitable(endpoint, selection) === undefined ? (withSentHealth(endpoint, selection.health) ?? []) : [],
  );
}

/** Why {@link selectEndpoints} omits an endpoint, `undefined` if it selects the endpoint. */
export function selectionOmission(endpoint: Endpoint, selection: EndpointSelection): OmissionReason | undefined {
  if (endpoint.servicePortName !== selection.port.name) return 'different port';
  const reason = unsuitable(endpoint, selection);
  if (reason !== undefined || withSentHealth(endpoint, selection.health) !== undefined) return reason;
  const health = healthOf(endpoint, selection.health.drainingLabel);
  return health === 'healthy' ? undefined : health;
}

/** Why an endpoint of the right port is not in the cluster, apart from its health. */
function unsuitable(
  endpoint: Endpoint,
  { node, onlyMutualTls, allowNames, labels }: EndpointSelection,
): OmissionReason | undefined {
  if (node !== undefined && endpoint.nodeName !== node) return 'different node';
  if (onlyMutualTls && endpoint.tlsMode !== 'istio') return 'plaintext behind SNI';
  if (!allowNames && isHostName(endpoint)) return 'host name';
  if (allowNames && hasNoAddress(endpoint)) return 'no address';
  return isSelected(labels ?? {}, endpoint.labels) ? undefined : 'subset labels';
}

/** Whether the address must be resolved. */
export function isHostName({ address }: Pick<Endpoint, 'address'>): boolean {
  return address !== '' && !isUnixSocket(address) && isIP(address) === 0;
}

/**
 * Whether the workload is reached only through the gateways of its network: its WorkloadEntry has a network and no
 * address.
 */
export function hasNoAddress({ address }: Pick<Endpoint, 'address'>): boolean {
  return address === '';
}

/** Smaller lists are searched linearly. */
const manyEndpoints = 1_000;

const byPort = onceFor(
  (endpoints: readonly Endpoint[]): ReadonlyMap<string, readonly Endpoint[]> =>
    Map.groupBy(endpoints, ({ servicePortName }) => servicePortName),
);

/**
 * A service's list has an entry for each endpoint and port, and is searched for each port. The index avoids quadratic
 * time.
 */
function ofPort(endpoints: readonly Endpoint[], name: string): readonly Endpoint[] {
  if (endpoints.length >= manyEndpoints) return byPort(endpoints).get(name) ?? [];
  return endpoints.filter(({ servicePortName }) => servicePortName === name);
}
