/** BackendTLSPolicies of the same files that conflict, or whose authorities gateways cannot use. */
import type { Config } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import type { Problem } from '../../model/config/problem.ts';
import { CredentialIndex } from '../../model/push-context/credential-index.ts';
import { backendTlsReports, type PortsOfService } from '../../model/translation/gateway-api/backend-tls-status.ts';
import { aboutObject } from './about-object.ts';

/** Warnings: a ConfigMap that is not in the files may be in the cluster. So may a Service, of which nothing is reported then. */
export function backendTlsProblems(configs: readonly Config[]): Problem[] {
  const { BackendTLSPolicy: policies, ConfigMap, Service } = configSetOf(configs);
  const credentials = new CredentialIndex({ Secret: [], ConfigMap });
  const services = new Map(Service.map(({ namespace, name, spec }) => [`${namespace}/${name}`, spec.spec.ports]));
  const portsOf: PortsOfService = (namespace, name) => services.get(`${namespace}/${name}`)?.map((port) => port.name);
  return [...backendTlsReports(policies, credentials, portsOf)].flatMap((report): Problem[] => {
    if (report === undefined) return [];
    const { policy, message } = report;
    return [{ severity: 'warning', ...aboutObject(policy), field: 'spec', message }];
  });
}
