/** Reports ServiceEntries with a host of Consul (docs/consul.md). */
import { type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

export const checkConsulHosts: ConfigCheck = function* ({ configs, hosts }) {
  for (const config of configs.ServiceEntry) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const [index, host] of config.spec.hosts.entries()) {
      const service = hosts.servicesOf(host).find(({ registry }) => registry === 'Consul');
      if (service === undefined) continue;
      const effect =
        service.namespace === config.namespace
          ? 'requests reach endpoints of both, and the ports of one of them apply'
          : `clients of namespace ${config.namespace} do not reach the service of Consul`;
      yield {
        ...{ code: 'HOST_CONFLICT', config, field: `spec.hosts[${index}]` },
        message: `${host} is also a service of Consul: ${effect}; give the ServiceEntry another host`,
      };
    }
  }
};
