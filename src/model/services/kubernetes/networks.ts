/** As in Istio, the network label of the system namespace has priority over the networks of the mesh configuration. */
import { BlockList, isIPv6 } from 'node:net';
import type { MeshNetworks } from '../../mesh/mesh-networks.ts';

export class ClusterNetworks {
  readonly #clusterNetwork: string;
  readonly #ranges: readonly { readonly network: string; readonly range: BlockList }[];

  /** @param label network label of the system namespace; empty if absent */
  constructor(networks: MeshNetworks, clusterId: string, label: string) {
    const networkEntries = Object.entries(networks.networks);
    const registryNetwork = networkEntries.find(([, { endpoints }]) =>
      endpoints.some(({ fromRegistry }) => fromRegistry === clusterId),
    );
    const ranges = networkEntries.flatMap(([network, { endpoints }]) =>
      endpoints.flatMap(({ fromCidr }) => (fromCidr === undefined ? [] : [{ network, range: rangeOf(fromCidr) }])),
    );
    this.#clusterNetwork = label || (registryNetwork?.[0] ?? '');
    this.#ranges = this.#clusterNetwork === '' ? ranges : [];
  }

  networkOf(address: string, labels: Readonly<Record<string, string>> = {}): string {
    const label = labels['topology.istio.io/network'];
    if (label) return label;
    if (this.#clusterNetwork !== '') return this.#clusterNetwork;
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    return this.#ranges.find(({ range }) => range.check(address, family))?.network ?? '';
  }
}

function rangeOf(cidr: string): BlockList {
  const [address = '', prefixLength = ''] = cidr.split('/');
  const list = new BlockList();
  list.addSubnet(address, Number(prefixLength), isIPv6(address) ? 'ipv6' : 'ipv4');
  return list;
}
