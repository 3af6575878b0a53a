/** Endpoints as a proxy of one network and cluster can reach them (spec/discovery.md §5.7). */

import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { NetworkGateway, NetworkGateways } from '../../model/services/network-gateways.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { weightOf } from './locality-groups.ts';
import type { OmissionReason } from './omission.ts';
import { hasNoAddress } from './selection.ts';

export interface NetworkView extends Pick<ProxyShape, 'network' | 'clusterId'> {
  readonly gateways: NetworkGateways;
  /** Clients must stay in their own cluster. */
  readonly clusterLocal: boolean;
  /** Connections use mutual TLS wherever an endpoint accepts it. Gateways accept nothing else. */
  readonly mutualTls: boolean;
}

/**
 * Endpoints of another network are reached through that network's gateways, which only accept mutual TLS. Endpoints
 * without mutual TLS are omitted, as are all remote endpoints if clients do not use it. If no gateway is known, or one
 * side has no network, the endpoint is reached directly, if it has an address.
 *
 * Weights keep their proportions: a gateway has the weight of all endpoints behind it, and several gateways share it.
 * All weights are multiplied if needed to keep them integers.
 */
export function reachableEndpoints(endpoints: readonly Endpoint[], view: NetworkView): readonly Endpoint[] {
  const here = view.clusterLocal ? endpoints.filter((endpoint) => !isOfDifferentCluster(endpoint, view)) : endpoints;
  if (view.network === '' || view.gateways.all.length === 0) return withAddress(here);
  const waysTo = new Map<Endpoint, readonly NetworkGateway[]>();
  for (const endpoint of here) {
    const ways = gatewaysTo(endpoint, view);
    if (ways.length > 0) waysTo.set(endpoint, ways);
  }
  if (waysTo.size === 0) return withAddress(here);
  return view.mutualTls ? throughGateways(here, waysTo) : withAddress(here.filter((endpoint) => !waysTo.has(endpoint)));
}

function withAddress(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.some(hasNoAddress) ? endpoints.filter((endpoint) => !hasNoAddress(endpoint)) : endpoints;
}

/** Why {@link reachableEndpoints} omits an endpoint, `undefined` if clients reach it, directly or through a gateway. */
export function reachOmission(endpoint: Endpoint, view: NetworkView): OmissionReason | undefined {
  if (isOfDifferentCluster(endpoint, view)) return 'different cluster';
  if (gatewaysTo(endpoint, view).length === 0) return hasNoAddress(endpoint) ? 'no address' : undefined;
  if (!view.mutualTls) return 'client without mutual TLS';
  return notForwarded(endpoint);
}

/**
 * Whether clients connect to an endpoint of a different network directly, because no gateway of that network is known.
 */
export function lacksGateway(endpoint: Endpoint, view: NetworkView): boolean {
  return isOfDifferentNetwork(endpoint, view) && gatewaysTo(endpoint, view).length === 0;
}

function isOfDifferentCluster(endpoint: Endpoint, { clusterLocal, clusterId }: NetworkView): boolean {
  return clusterLocal && clusterId !== '' && endpoint.clusterId !== clusterId;
}

function isOfDifferentNetwork(endpoint: Endpoint, { network }: NetworkView): boolean {
  return network !== '' && endpoint.network !== '' && endpoint.network !== network;
}

const noGateways: readonly NetworkGateway[] = [];

/** The gateways in front of an endpoint, empty if it is reached directly. */
function gatewaysTo(endpoint: Endpoint, view: NetworkView): readonly NetworkGateway[] {
  const { gateways } = view;
  if (gateways.all.length === 0 || !isOfDifferentNetwork(endpoint, view)) return noGateways;
  return gateways.to(endpoint.network, endpoint.clusterId);
}

/** A gateway hides the health of the workloads behind it, so only healthy ones count. */
function notForwarded({ tlsMode, health }: Endpoint): OmissionReason | undefined {
  if (tlsMode !== 'istio') return 'remote workload without mutual TLS';
  return health === 'healthy' ? undefined : 'remote workload not healthy';
}

function throughGateways(
  endpoints: readonly Endpoint[],
  waysTo: ReadonlyMap<Endpoint, readonly NetworkGateway[]>,
): readonly Endpoint[] {
  const scale = [...new Set([...waysTo.values()].map((ways) => ways.length))].reduce(lcm, 1);
  const direct: Endpoint[] = [];
  const behind = new Map<string, Endpoint>();
  for (const endpoint of endpoints) {
    const ways = waysTo.get(endpoint);
    if (ways === undefined && hasNoAddress(endpoint)) continue;
    if (ways === undefined) direct.push(scale === 1 ? endpoint : { ...endpoint, weight: weightOf(endpoint) * scale });
    else if (notForwarded(endpoint) === undefined) {
      for (const way of ways) {
        // Keeps the locality of endpoints behind a gateway, so that locality failover still works.
        const id = `${way.address} ${way.port} ${endpoint.locality}`;
        const weight = (behind.get(id)?.weight ?? 0) + (weightOf(endpoint) * scale) / ways.length;
        behind.set(id, gatewayEndpoint(way, endpoint, weight));
      }
    }
  }
  return [...direct, ...behind.values()];
}

function gatewayEndpoint(
  way: NetworkGateway,
  { locality, servicePortName, ...behind }: Endpoint,
  weight: number,
): Endpoint {
  return {
    ...{ address: way.address, port: way.port, network: way.network, clusterId: way.cluster || behind.clusterId },
    ...{ locality, servicePortName, weight, tlsMode: 'istio', health: 'healthy' },
    ...{ labels: {}, serviceAccount: '', namespace: '', workloadName: '' },
  };
}

function lcm(a: number, b: number): number {
  return (a * b) / gcd(a, b);
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
