/** Gateways that VirtualServices name exist, and serve their hosts (spec/discovery.md §8.7). */
import type { Config } from '../../model/config/config.ts';
import { objectsByName } from '../../model/config/config-set.ts';
import { hostsOverlap } from '../../model/fields/hostname.ts';
import type { Gateway } from '../../model/kinds/gateway.ts';
import type { VirtualService } from '../../model/kinds/virtual-service.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWritten } from './config-warning.ts';

/** Hosts of servers that a message lists. */
const maxHosts = 5;

export const checkGatewaysOfRoutes: ConfigCheck = function* (sources) {
  const byName = objectsByName(sources.configs.Gateway);
  for (const config of sources.configs.VirtualService) {
    yield undefined;
    if (!isWritten(config)) continue;
    for (const [index, written] of (config.spec.gateways ?? []).entries()) {
      if (written === 'mesh') continue;
      const name = written.includes('/') ? written : `${config.namespace}/${written}`;
      const gateway = byName.get(name);
      if (gateway === undefined) yield missingGateway(config, index, name, sources);
      else yield* unservedHosts(config, gateway, sources);
    }
  }
};

function missingGateway(
  config: Config<VirtualService>,
  index: number,
  name: string,
  { known }: CheckSources,
): ConfigWarning | undefined {
  if (!known.isComplete('Gateway', name.slice(0, name.indexOf('/')))) return undefined;
  return {
    ...{ code: 'GATEWAY_NOT_FOUND', config, field: `spec.gateways[${index}]` },
    message: `there is no Gateway ${name}, so these routes apply at no gateway: correct the name (namespace/name of another namespace), or create the Gateway`,
  };
}

function* unservedHosts(
  config: Config<VirtualService>,
  gateway: Config<Gateway>,
  { context }: CheckSources,
): Generator<ConfigWarning> {
  const served = gateway.spec.servers.flatMap(({ hosts }) => hosts.map((host) => servedHost(host, gateway)));
  const mine = served.filter(({ namespace }) => namespace === '*' || namespace === config.namespace);
  for (const [index, written] of config.spec.hosts.entries()) {
    const host = context.hostNames.qualified(written, config.namespace);
    if (mine.some((one) => hostsOverlap(host, one.host) || hostsOverlap(written, one.host))) continue;
    const isOfOthers = served.some((one) => hostsOverlap(host, one.host));
    const why = isOfOthers
      ? `does not let VirtualServices of namespace ${config.namespace} serve ${written}: list ${config.namespace}/${written} in servers.hosts`
      : `serves ${listed(served)} and not ${written}: add the host to a server, or correct it here`;
    yield {
      ...{ code: 'HOST_NOT_IN_GATEWAY', config, field: `spec.hosts[${index}]` },
      message: `Gateway ${gateway.namespace}/${gateway.name} ${why}`,
      other: { config: gateway, field: 'spec.servers' },
    };
  }
}

interface ServedHost {
  readonly namespace: string;
  readonly host: string;
}

function servedHost(written: string, gateway: Config<Gateway>): ServedHost {
  const [namespace, host] = written.includes('/') ? written.split('/', 2) : ['*', written];
  return { namespace: namespace === '.' ? gateway.namespace : namespace!, host: host! };
}

function listed(served: readonly ServedHost[]): string {
  const hosts = [...new Set(served.map(({ host }) => host))];
  return hosts.slice(0, maxHosts).join(', ') + (hosts.length > maxHosts ? ', …' : '');
}
