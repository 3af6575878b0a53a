/**
 * Reports WorkloadEntries with a host name as address if a service that requires IP addresses selects them. Proxies do not receive such endpoints.
 */
import { objectsByName } from '../../../model/config/config-set.ts';
import type { Service } from '../../../model/services/service.ts';
import { hostNameEndpoints } from '../../../networking/index.ts';
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

export const checkHostNameEndpoints: ConfigCheck = function* ({ context, configs: { WorkloadEntry } }) {
  if (WorkloadEntry.length === 0) return;
  const entries = objectsByName(WorkloadEntry);
  for (const service of context.services) {
    yield undefined;
    const { hostname, namespace, origin } = service;
    const names = hostNameEndpoints(service, context.endpointsOf(hostname, namespace));
    for (const [workload, address] of new Map(names.map((hostName) => [hostName.workloadName, hostName.address]))) {
      const config = entries.get(`${namespace}/${workload}`);
      if (config === undefined || !isWrittenConfig(config)) continue;
      yield {
        ...{ code: 'HOST_NAME_ENDPOINT', config, field: 'spec.address' },
        message: `is the host name ${address}, which ${selectorText(service)} does not resolve: no client of ${hostname} is sent this endpoint; use an IP address${origin.kind === 'Service' ? '' : ', or resolution DNS'}`,
      };
    }
  }
};

function selectorText({ origin }: Service): string {
  const object = `${origin.kind} ${origin.namespace}/${origin.name}`;
  return origin.kind === 'Service' ? object : `${object} (resolution STATIC)`;
}
