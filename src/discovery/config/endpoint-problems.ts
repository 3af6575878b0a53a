/** WorkloadEntries of the same files that no proxy is sent, because a service that selects them needs IP addresses. */
import type { Config } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import type { Problem } from '../../model/config/problem.ts';
import { buildServiceRegistry } from '../../model/services/service-registry.ts';
import { hostNameEndpoints } from '../../networking/index.ts';

/** Warnings, one for each WorkloadEntry and service. */
export function endpointProblems(configs: readonly Config[]): Problem[] {
  const { ServiceEntry, WorkloadEntry } = configSetOf(configs);
  const entries = new Map(WorkloadEntry.map((entry) => [`${entry.namespace}/${entry.name}`, entry]));
  const { services, endpoints } = buildServiceRegistry({ ServiceEntry, WorkloadEntry });
  const found = new Map<string, Problem>();
  for (const service of services) {
    const { hostname, namespace } = service;
    const all = endpoints.get(hostname)?.get(namespace) ?? [];
    for (const { address, workloadName } of hostNameEndpoints(service, all)) {
      const entry = entries.get(`${namespace}/${workloadName}`);
      if (entry === undefined) continue;
      found.set(`${workloadName} ${hostname} ${namespace}`, {
        ...{ severity: 'warning', file: entry.source?.file ?? '', line: entry.source?.line ?? 1 },
        object: `WorkloadEntry ${namespace}/${workloadName}`,
        key: { kind: 'WorkloadEntry', namespace, name: workloadName },
        field: 'spec.address',
        message: `is the host name ${address}, which ServiceEntry ${service.origin.namespace}/${service.origin.name} (resolution STATIC) does not resolve: no client of ${hostname} is sent this endpoint; use an IP address, or resolution DNS`,
      });
    }
  }
  return [...found.values()];
}
