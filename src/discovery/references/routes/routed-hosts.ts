/** Reports mesh VirtualServices with the host of a missing Kubernetes Service, which clients cannot resolve. */
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

export const checkRoutedHosts: ConfigCheck = function* ({ context, configs, hosts }) {
  for (const config of configs.VirtualService) {
    yield undefined;
    const { hosts: writtenHosts, gateways = ['mesh'] } = config.spec;
    if (!isWrittenConfig(config) || !gateways.includes('mesh')) continue;
    for (const [index, writtenHost] of writtenHosts.entries()) {
      const host = context.hostNames.qualify(writtenHost, config.namespace);
      // Hosts outside the cluster domain may be resolved elsewhere, or occur only as a header.
      if (hosts.namespaceOf(host) === undefined || !hosts.isMissingHost(host)) continue;
      yield {
        ...{ code: 'HOST_NOT_FOUND', config, field: `spec.hosts[${index}]` },
        message: `no service has the host ${host}, so clients cannot resolve it and these routes are not used: correct the name, or create the Service`,
      };
    }
  }
};
