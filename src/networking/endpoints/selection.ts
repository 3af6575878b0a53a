import { isIP } from 'node:net';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { matchesSelector } from '../../model/services/label-match.ts';
import type { Endpoint, Port } from '../../model/services/service.ts';
import { isUnixSocket } from '../messages/address.ts';
import { type HealthSelection, healthOf, withSentHealth } from './health.ts';
import type { OmissionReason } from './omission.ts';

export interface EndpointSelection {
  readonly port: Port;
  readonly health: HealthSelection;
  readonly labels?: Readonly<Record<string, string>>;
  /** Selects endpoints of this Kubernetes node. Absent for all nodes. */
  readonly node?: string;
  /** Set for a cluster in SNI form. */
  readonly onlyMutualTls?: boolean;
  /** DNS clusters resolve host names; EDS accepts only addresses. */
  readonly allowNames?: boolean;
}

/** Matches endpoints to a service port by name, because target port numbers differ between workloads. */
export function selectEndpoints(endpoints: readonly Endpoint[], selection: EndpointSelection): readonly Endpoint[] {
  return endpointsOfPort(endpoints, selection.port.name).flatMap((endpoint) =>
    unsuitableReason(endpoint, selection) === undefined ? (withSentHealth(endpoint, selection.health) ?? []) : [],
  );
}

export function selectionOmission(endpoint: Endpoint, selection: EndpointSelection): OmissionReason | undefined {
  if (endpoint.servicePortName !== selection.port.name) return 'different port';
  const reason = unsuitableReason(endpoint, selection);
  if (reason !== undefined || withSentHealth(endpoint, selection.health) !== undefined) return reason;
  const health = healthOf(endpoint, selection.health.drainingLabel);
  return health === 'healthy' ? undefined : health;
}

/** Returns why an endpoint of this port is omitted, except because of its health. */
function unsuitableReason(
  endpoint: Endpoint,
  { node, onlyMutualTls, allowNames, labels }: EndpointSelection,
): OmissionReason | undefined {
  if (node !== undefined && endpoint.nodeName !== node) return 'different node';
  if (onlyMutualTls && endpoint.tlsMode !== 'istio') return 'plaintext behind SNI';
  if (!allowNames && isHostName(endpoint)) return 'host name';
  if (allowNames && hasNoAddress(endpoint)) return 'no address';
  return matchesSelector(labels ?? {}, endpoint.labels) ? undefined : 'subset labels';
}

export function isHostName({ address }: Pick<Endpoint, 'address'>): boolean {
  return address !== '' && !isUnixSocket(address) && isIP(address) === 0;
}

/** Whether the workload is reachable only through the gateways of its network: a WorkloadEntry with a network but no address. */
export function hasNoAddress({ address }: Pick<Endpoint, 'address'>): boolean {
  return address === '';
}

const manyEndpoints = 1_000;

const endpointsByPort = memoizeByObject(
  (endpoints: readonly Endpoint[]): ReadonlyMap<string, readonly Endpoint[]> =>
    Map.groupBy(endpoints, ({ servicePortName }) => servicePortName),
);

/** Large lists are indexed, because every port of a service searches the list. */
function endpointsOfPort(endpoints: readonly Endpoint[], name: string): readonly Endpoint[] {
  if (endpoints.length >= manyEndpoints) return endpointsByPort(endpoints).get(name) ?? [];
  return endpoints.filter(({ servicePortName }) => servicePortName === name);
}
