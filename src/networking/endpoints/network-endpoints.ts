import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { NetworkGateway, NetworkGateways } from '../../model/services/network-gateways.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { weightOf } from './locality-groups.ts';
import type { OmissionReason } from './omission.ts';
import { hasNoAddress } from './selection.ts';

export interface NetworkView extends Pick<ProxyShape, 'network' | 'clusterId'> {
  readonly gateways: NetworkGateways;
  readonly isClusterLocal: boolean;
  /** Gateways accept only mutual TLS. */
  readonly mutualTls: boolean;
}

/**
 * Replaces endpoints of another network with that network's gateways, which share the weight of all endpoints behind them. Remote endpoints without
 * mutual TLS are omitted. If no gateway or network is known, an endpoint with an address is reached directly.
 */
export function reachableEndpoints(endpoints: readonly Endpoint[], view: NetworkView): readonly Endpoint[] {
  const candidates = view.isClusterLocal
    ? endpoints.filter((endpoint) => !isOfDifferentCluster(endpoint, view))
    : endpoints;
  if (view.network === '' || view.gateways.allGateways.length === 0) return withAddress(candidates);
  const gatewaysByEndpoint = new Map<Endpoint, readonly NetworkGateway[]>();
  for (const endpoint of candidates) {
    const gateways = gatewaysTo(endpoint, view);
    if (gateways.length > 0) gatewaysByEndpoint.set(endpoint, gateways);
  }
  if (gatewaysByEndpoint.size === 0) return withAddress(candidates);
  return view.mutualTls
    ? routeThroughGateways(candidates, gatewaysByEndpoint)
    : withAddress(candidates.filter((endpoint) => !gatewaysByEndpoint.has(endpoint)));
}

function withAddress(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.some(hasNoAddress) ? endpoints.filter((endpoint) => !hasNoAddress(endpoint)) : endpoints;
}

export function reachOmission(endpoint: Endpoint, view: NetworkView): OmissionReason | undefined {
  if (isOfDifferentCluster(endpoint, view)) return 'different cluster';
  if (gatewaysTo(endpoint, view).length === 0) return hasNoAddress(endpoint) ? 'no address' : undefined;
  if (!view.mutualTls) return 'client without mutual TLS';
  return isNotForwarded(endpoint);
}

export function lacksGateway(endpoint: Endpoint, view: NetworkView): boolean {
  return isOfDifferentNetwork(endpoint, view) && gatewaysTo(endpoint, view).length === 0;
}

function isOfDifferentCluster(endpoint: Endpoint, { isClusterLocal, clusterId }: NetworkView): boolean {
  return isClusterLocal && clusterId !== '' && endpoint.clusterId !== clusterId;
}

function isOfDifferentNetwork(endpoint: Endpoint, { network }: NetworkView): boolean {
  return network !== '' && endpoint.network !== '' && endpoint.network !== network;
}

const noGateways: readonly NetworkGateway[] = [];

function gatewaysTo(endpoint: Endpoint, view: NetworkView): readonly NetworkGateway[] {
  const { gateways } = view;
  if (gateways.allGateways.length === 0 || !isOfDifferentNetwork(endpoint, view)) return noGateways;
  return gateways.gatewaysTo(endpoint.network, endpoint.clusterId);
}

/** A gateway hides the health of endpoints behind it, so unhealthy endpoints are omitted. */
function isNotForwarded({ tlsMode, health }: Endpoint): OmissionReason | undefined {
  if (tlsMode !== 'istio') return 'remote workload without mutual TLS';
  return health === 'healthy' ? undefined : 'remote workload not healthy';
}

function routeThroughGateways(
  endpoints: readonly Endpoint[],
  gatewaysByEndpoint: ReadonlyMap<Endpoint, readonly NetworkGateway[]>,
): readonly Endpoint[] {
  const scale = [...new Set([...gatewaysByEndpoint.values()].map((gateways) => gateways.length))].reduce(lcm, 1);
  const directEndpoints: Endpoint[] = [];
  const gatewayEndpoints = new Map<string, Endpoint>();
  for (const endpoint of endpoints) {
    const networkGateways = gatewaysByEndpoint.get(endpoint);
    if (networkGateways === undefined && hasNoAddress(endpoint)) continue;
    if (networkGateways === undefined)
      directEndpoints.push(scale === 1 ? endpoint : { ...endpoint, weight: weightOf(endpoint) * scale });
    else if (isNotForwarded(endpoint) === undefined) {
      for (const gateway of networkGateways) {
        // Endpoints behind a gateway keep their locality, for locality failover.
        const id = `${gateway.address} ${gateway.port} ${endpoint.locality}`;
        const weight = (gatewayEndpoints.get(id)?.weight ?? 0) + (weightOf(endpoint) * scale) / networkGateways.length;
        gatewayEndpoints.set(id, gatewayEndpoint(gateway, endpoint, weight));
      }
    }
  }
  return [...directEndpoints, ...gatewayEndpoints.values()];
}

function gatewayEndpoint(
  gateway: NetworkGateway,
  { locality, servicePortName, ...endpointFields }: Endpoint,
  weight: number,
): Endpoint {
  return {
    ...{
      address: gateway.address,
      port: gateway.port,
      network: gateway.network,
      clusterId: gateway.cluster || endpointFields.clusterId,
    },
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
