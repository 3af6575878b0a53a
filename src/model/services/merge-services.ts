import type { Service } from './service.ts';

export interface RegistryServices {
  readonly provider: string;
  readonly services: Iterable<Service>;
}

/**
 * Returns Kubernetes services first. The same host in several clusters becomes one service: the first cluster determines ports and attributes, and
 * each adds its virtual IPs.
 */
export function mergeServices(registries: readonly RegistryServices[]): readonly Service[] {
  const mergedByHost = new Map<string, Service>();
  const otherServices: Service[] = [];
  for (const { provider, services } of registries) {
    for (const service of services) {
      if (provider !== 'Kubernetes') {
        otherServices.push(service);
        continue;
      }
      const id = `${service.namespace}/${service.hostname}`;
      const existingService = mergedByHost.get(id);
      mergedByHost.set(id, existingService === undefined ? service : mergeClusters(existingService, service));
    }
  }
  return [...mergedByHost.values(), ...otherServices];
}

function mergeClusters(firstService: Service, otherService: Service): Service {
  const { attributes } = firstService;
  const addresses = { ...otherService.attributes?.externalAddresses, ...attributes?.externalAddresses };
  const ports = { ...otherService.attributes?.externalPorts, ...attributes?.externalPorts };
  return {
    ...firstService,
    clusterVIPs: { ...otherService.clusterVIPs, ...firstService.clusterVIPs },
    serviceAccounts: [...new Set([...firstService.serviceAccounts, ...otherService.serviceAccounts])],
    ...(attributes && {
      attributes: {
        ...attributes,
        ...(Object.keys(addresses).length > 0 && { externalAddresses: addresses }),
        ...(Object.keys(ports).length > 0 && { externalPorts: ports }),
      },
    }),
  };
}
