import type { Config } from '../../../model/config/config.ts';
import type { ServiceEntry } from '../../../model/kinds/workloads/service-entry.ts';
import type { Service } from '../../../model/services/service.ts';
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';

export const checkNetworks: ConfigCheck = function* ({ context, configs, knownObjects }) {
  if (!knownObjects.isComplete('NetworkGateway')) return;
  const networks = new Map<string, Service>();
  let hasOtherNetworks = false;
  for (const service of context.services) {
    yield undefined;
    if (service.meshExternal) continue;
    for (const { network, address } of context.endpointsOf(service.hostname, service.namespace)) {
      // Endpoints without an address are not sent, and a separate diagnostic reports them.
      if (address === '') continue;
      if (network === '') hasOtherNetworks = true;
      else if (!networks.has(network)) networks.set(network, service);
    }
  }
  if (networks.size + Number(hasOtherNetworks) < 2) return;
  for (const [network, service] of networks) {
    if (context.networkGateways.allGateways.some((gateway) => gateway.network === network)) continue;
    const config = objectOfService(service, configs);
    if (config === undefined || !isWrittenConfig(config)) continue;
    yield {
      ...{ code: 'NETWORK_WITHOUT_GATEWAY', config, field: networkField(config, network) },
      message: `endpoints of ${service.hostname} are in network ${network}, which has no known gateway, so clients of other networks connect to their addresses directly: list the gateway in the mesh networks (--networksConfig), or label its Service topology.istio.io/network=${network}`,
    };
  }
};

/** Endpoints outside ServiceEntries inherit the network of their workloads or cluster. */
function networkField({ kind, spec }: Config, network: string): string {
  const { endpoints = [] } = (kind === 'ServiceEntry' ? spec : {}) as Partial<ServiceEntry>;
  const index = endpoints.findIndex((endpoint) => endpoint.network === network);
  return index === -1 ? 'spec' : `spec.endpoints[${index}].network`;
}
