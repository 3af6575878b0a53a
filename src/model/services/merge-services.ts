/** Services of several registries as one list (spec/discovery.md §5.7). Pure. */
import type { Service } from './service.ts';

export interface RegistryServices {
  readonly provider: string;
  readonly services: Iterable<Service>;
}

/**
 * Kubernetes' first, in the order of the registries; the same host of several clusters is one service: the first says
 * ports and attributes, each cluster its virtual IPs. Others are listed as they are.
 */
export function mergeServices(registries: readonly RegistryServices[]): readonly Service[] {
  const merged = new Map<string, Service>();
  const others: Service[] = [];
  for (const { provider, services } of registries) {
    for (const service of services) {
      if (provider !== 'Kubernetes') {
        others.push(service);
        continue;
      }
      const id = `${service.namespace}/${service.hostname}`;
      const first = merged.get(id);
      merged.set(id, first === undefined ? service : mergeClusters(first, service));
    }
  }
  return [...merged.values(), ...others];
}

/** One service as two clusters have it. */
function mergeClusters(first: Service, second: Service): Service {
  const { attributes } = first;
  const addresses = { ...second.attributes?.externalAddresses, ...attributes?.externalAddresses };
  const ports = { ...second.attributes?.externalPorts, ...attributes?.externalPorts };
  return {
    ...first,
    clusterVIPs: { ...second.clusterVIPs, ...first.clusterVIPs },
    serviceAccounts: [...new Set([...first.serviceAccounts, ...second.serviceAccounts])],
    ...(attributes && {
      attributes: {
        ...attributes,
        ...(Object.keys(addresses).length > 0 && { externalAddresses: addresses }),
        ...(Object.keys(ports).length > 0 && { externalPorts: ports }),
      },
    }),
  };
}
