/** Which endpoints of a service stand behind one cluster (spec/discovery.md §8.3). */
import { isIP } from 'node:net';
import { onceFor } from '../../model/collections/once-for.ts';
import { isSelected } from '../../model/services/label-match.ts';
import type { Endpoint, Port } from '../../model/services/service.ts';
import { isUnixSocket } from '../messages/address.ts';
import { asSent, type HealthSelection, healthOf } from './health.ts';
import type { OmissionReason } from './omission.ts';

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
  return ofPort(endpoints, selection.port.name).flatMap((endpoint) =>
    unsuitable(endpoint, selection) === undefined ? (asSent(endpoint, selection.health) ?? []) : [],
  );
}

/** Why `selectEndpoints` leaves an endpoint out; `undefined` if it selects the endpoint. */
export function selectionOmission(endpoint: Endpoint, selection: EndpointSelection): OmissionReason | undefined {
  if (endpoint.servicePortName !== selection.port.name) return 'different port';
  const reason = unsuitable(endpoint, selection);
  if (reason !== undefined || asSent(endpoint, selection.health) !== undefined) return reason;
  const health = healthOf(endpoint, selection.health.drainingLabel);
  return health === 'healthy' ? undefined : health;
}

/** Why an endpoint of the right port is not one of the cluster, whatever its health is. */
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

/** Whether the address must be resolved before a connection is opened. */
export function isHostName({ address }: Pick<Endpoint, 'address'>): boolean {
  return address !== '' && !isUnixSocket(address) && isIP(address) === 0;
}

/** Whether the workload is reached only through the gateways of its network: its WorkloadEntry has a network and no address. */
export function hasNoAddress({ address }: Pick<Endpoint, 'address'>): boolean {
  return address === '';
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
