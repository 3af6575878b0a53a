/** WorkloadEntries of the same files that no proxy is sent, because a service that selects them needs IP addresses. */
import type { Config } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import type { Problem } from '../../model/config/problem.ts';
import type { Service } from '../../model/services/service.ts';
import { buildServiceRegistry } from '../../model/services/service-registry.ts';
import { hostNameEndpoints } from '../../networking/index.ts';
import { aboutObject } from './about-object.ts';

/** Warnings, one for each WorkloadEntry and service. */
export function endpointProblems(configs: readonly Config[]): Problem[] {
  const set = configSetOf(configs);
  const { WorkloadEntry } = set;
  const entries = new Map(WorkloadEntry.map((entry) => [`${entry.namespace}/${entry.name}`, entry]));
  const { services, endpoints } = buildServiceRegistry(set);
  const found = new Map<string, Problem>();
  for (const service of services) {
    const { hostname, namespace } = service;
    const all = endpoints.get(hostname)?.get(namespace) ?? [];
    for (const { address, workloadName } of hostNameEndpoints(service, all)) {
      const entry = entries.get(`${namespace}/${workloadName}`);
      if (entry === undefined) continue;
      found.set(`${workloadName} ${hostname} ${namespace}`, {
        severity: 'warning',
        ...aboutObject(entry),
        field: 'spec.address',
        message: `is the host name ${address}, which ${selectorText(service)} does not resolve: no client of ${hostname} is sent this endpoint; use an IP address${service.origin.kind === 'Service' ? '' : ', or resolution DNS'}`,
        code: 'HOST_NAME_ENDPOINT',
      });
    }
  }
  return [...found.values()];
}

function selectorText({ origin }: Service): string {
  const object = `${origin.kind} ${origin.namespace}/${origin.name}`;
  return origin.kind === 'Service' ? object : `${object} (resolution STATIC)`;
}
