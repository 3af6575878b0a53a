/** Gateways through which clients of other networks reach a network. */
import { ownValue } from '../../runtime/json-object.ts';
import { compareText } from '../config/config.ts';
import { isIpAddress } from '../fields/names.ts';
import type { MeshNetworks } from '../mesh/mesh-networks.ts';
import type { Service } from './service.ts';

export interface NetworkGateway {
  readonly network: string;
  /** Cluster of the gateway. If empty, the gateway serves the whole network. */
  readonly cluster: string;
  readonly address: string;
  readonly port: number;
}

const defaultGatewayPort = 15443;

export function gatewaysOfService(service: Service): readonly NetworkGateway[] {
  const network = service.labels['topology.istio.io/network'];
  if (!network) return [];
  const labelledPort = Number(service.labels['networking.istio.io/gatewayPort']);
  const port =
    Number.isInteger(labelledPort) && labelledPort > 0 && labelledPort <= 65535 ? labelledPort : defaultGatewayPort;
  return externalAddresses(service, port).map((externalAddress) => ({ network, ...externalAddress }));
}

function externalAddresses(
  { attributes }: Service,
  port: number,
): readonly { readonly cluster: string; readonly address: string; readonly port: number }[] {
  return Object.entries(attributes?.externalAddresses ?? {}).flatMap(([cluster, addresses]) => {
    const nodePorts = ownValue(attributes?.externalPorts, cluster);
    const externalAddress = nodePorts === undefined ? port : nodePorts[port];
    return externalAddress === undefined
      ? []
      : addresses.map((address) => ({ cluster, address, port: externalAddress }));
  });
}

/** A service of a registry contributes its external addresses. If the network lists clusters, only addresses in these clusters are used. */
export function gatewaysOfNetworks(
  { networks }: MeshNetworks,
  servicesOf: (hostname: string) => readonly Service[],
): readonly NetworkGateway[] {
  return Object.entries(networks).flatMap(([network, { endpoints, gateways }]) => {
    const clusters = endpoints.flatMap(({ fromRegistry }) => fromRegistry ?? []);
    const isInNetwork = ({ cluster }: { readonly cluster: string }): boolean =>
      clusters.length === 0 || clusters.includes(cluster);
    return gateways.flatMap(({ address, registryServiceName, port }) => {
      if (address !== undefined) return [{ network, cluster: '', address, port }];
      const services = registryServiceName === undefined ? [] : servicesOf(registryServiceName);
      return services.flatMap((service) =>
        externalAddresses(service, port)
          .filter(isInNetwork)
          .map((externalAddress) => ({ network, ...externalAddress })),
      );
    });
  });
}

export class NetworkGateways {
  static readonly empty = new NetworkGateways([]);
  readonly allGateways: readonly NetworkGateway[];
  readonly #gatewaysByNetwork: ReadonlyMap<string, readonly NetworkGateway[]>;

  /** @param gateways whose addresses are resolved */
  constructor(gateways: readonly NetworkGateway[]) {
    const gatewayById = new Map(gateways.map((gateway) => [idOf(gateway), gateway]));
    this.allGateways = [...gatewayById.values()].sort(compareByAddress);
    this.#gatewaysByNetwork = Map.groupBy(this.allGateways, ({ network }) => network);
  }

  /** Gateways in the workload's cluster are preferred over other gateways of the network. */
  gatewaysTo(network: string, cluster: string): readonly NetworkGateway[] {
    const allGateways = this.#gatewaysByNetwork.get(network) ?? [];
    const clusterGateways = allGateways.filter((gateway) => gateway.cluster === cluster);
    return clusterGateways.length > 0 ? clusterGateways : allGateways;
  }

  isEqualTo(otherGateways: NetworkGateways): boolean {
    return this.allGateways.map(idOf).join() === otherGateways.allGateways.map(idOf).join();
  }
}

export function resolvedGateways(
  gateways: readonly NetworkGateway[],
  resolve: (hostname: string) => readonly string[],
): readonly NetworkGateway[] {
  return gateways.flatMap((gateway) =>
    isIpAddress(gateway.address) ? [gateway] : resolve(gateway.address).map((address) => ({ ...gateway, address })),
  );
}

function idOf({ network, cluster, address, port }: NetworkGateway): string {
  return `${network}/${cluster}/${address}/${port}`;
}

function compareByAddress(a: NetworkGateway, b: NetworkGateway): number {
  return compareText(idOf(a), idOf(b));
}
