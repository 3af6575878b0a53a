/** Which service ports a proxy's own workload serves (spec/discovery.md §5.4 "proxy → services"). */
import type { Config } from './config.ts';
import type { ServiceEntry } from './kinds/service-entry.ts';
import { isSelected } from './label-match.ts';
import type { Proxy } from './proxy.ts';
import type { Service, ServiceTarget } from './service.ts';
import type { EndpointIndex } from './service-registry.ts';

/** Answers for one set of services and endpoints. */
export class ServiceTargets {
  private readonly servicesOf: (hostname: string, namespace: string) => readonly Service[];
  private readonly byAddress: ReadonlyMap<string, readonly Served[]>;
  private readonly selecting: ReadonlyMap<string, readonly Config<ServiceEntry>[]>;

  constructor(
    endpoints: EndpointIndex,
    serviceEntries: readonly Config<ServiceEntry>[],
    servicesOf: (hostname: string, namespace: string) => readonly Service[],
  ) {
    this.servicesOf = servicesOf;
    this.byAddress = servedByAddress(endpoints);
    const withSelector = serviceEntries.filter((entry) => entry.spec.workloadSelector !== undefined);
    this.selecting = Map.groupBy(withSelector, (entry) => entry.namespace);
  }

  /**
   * The workload is found by its addresses among the endpoints; a node that no endpoint names is found by its labels,
   * as a ServiceEntry of its namespace selects them. Each port once, oldest service first.
   */
  of(proxy: Pick<Proxy, 'ipAddresses' | 'configNamespace' | 'labels'>): readonly ServiceTarget[] {
    const targets = new Map<string, ServiceTarget>();
    const add = (served: Served): void => {
      const service = this.servicesOf(served.hostname, served.namespace)[0];
      const port = service?.ports.find((candidate) => candidate.name === served.portName);
      if (service === undefined || port === undefined) return;
      const id = `${service.namespace}/${service.hostname}/${port.number}`;
      if (!targets.has(id)) targets.set(id, { service, port, targetPort: served.port });
    };
    for (const address of proxy.ipAddresses) for (const served of this.byAddress.get(address) ?? []) add(served);
    for (const entry of this.selecting.get(proxy.configNamespace) ?? []) {
      const selector = entry.spec.workloadSelector!.labels;
      // No labels would make every proxy of the namespace an instance.
      if (Object.keys(selector).length === 0 || !isSelected(selector, proxy.labels)) continue;
      for (const hostname of entry.spec.hosts) {
        for (const { name, number, targetPort } of entry.spec.ports) {
          add({ hostname, namespace: entry.namespace, portName: name, port: targetPort ?? number });
        }
      }
    }
    return [...targets.values()].sort((a, b) => a.service.creationTime - b.service.creationTime);
  }
}

interface Served {
  readonly hostname: string;
  readonly namespace: string;
  readonly portName: string;
  readonly port: number;
}

function servedByAddress(endpoints: EndpointIndex): Map<string, Served[]> {
  const index = new Map<string, Served[]>();
  for (const [hostname, byNamespace] of endpoints) {
    for (const [namespace, list] of byNamespace) {
      for (const endpoint of list) {
        const served = { hostname, namespace, portName: endpoint.servicePortName, port: endpoint.port };
        const bucket = index.get(endpoint.address);
        if (bucket === undefined) index.set(endpoint.address, [served]);
        else bucket.push(served);
      }
    }
  }
  return index;
}
