import { identitiesInDomains, trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';

export function identitiesOf(service: Service, push: PushContext): readonly string[] {
  const endpointAccounts = push
    .endpointsOf(service.hostname, service.namespace)
    .map((endpoint) => endpoint.serviceAccount);
  const domains = trustDomainsOf(push.mesh);
  const ids = [...new Set([...service.serviceAccounts, ...endpointAccounts])].filter(Boolean);
  return [...new Set(ids.flatMap((id) => identitiesInDomains(domains, id)))].sort();
}
