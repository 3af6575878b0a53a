/** Reports Gateways that a VirtualService refers to but that do not exist or do not serve its hosts. */
import type { Config } from '../../../model/config/config.ts';
import { objectsByName } from '../../../model/config/config-set.ts';
import { hostsOverlap } from '../../../model/fields/hostname.ts';
import type { Gateway } from '../../../model/kinds/gateway/gateway.ts';
import type { VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';

const maxHosts = 5;

export const checkGatewaysOfRoutes: ConfigCheck = function* (sources) {
  const gatewayByName = objectsByName(sources.configs.Gateway);
  const namesakes = Map.groupBy(sources.configs.Gateway.filter(isWrittenConfig), ({ name }) => name);
  for (const config of sources.configs.VirtualService) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const [index, writtenGateway] of (config.spec.gateways ?? []).entries()) {
      if (writtenGateway === 'mesh') continue;
      const name = qualifiedName(writtenGateway, config);
      const gateway = gatewayByName.get(name);
      if (gateway === undefined)
        yield missingGateway(config, index, name, namesakes.get(name.slice(name.indexOf('/') + 1)) ?? [], sources);
      else yield* unservedHosts(config, gateway, sources);
    }
    yield* matchesOfNoGateway(config);
  }
};

function qualifiedName(gateway: string, { namespace }: Config): string {
  return gateway === 'mesh' || gateway.includes('/') ? gateway : `${namespace}/${gateway}`;
}

/** A delegate has the gateways of its root. */
function* matchesOfNoGateway(config: Config<VirtualService>): Generator<ConfigWarning> {
  const { hosts, gateways = [], http = [], tls = [], tcp = [] } = config.spec;
  if (hosts.length === 0) return;
  const boundGateways = new Set(
    (gateways.length === 0 ? ['mesh'] : gateways).map((gatewayName) => qualifiedName(gatewayName, config)),
  );
  for (const [list, routes] of Object.entries({ http, tls, tcp })) {
    for (const [routeIndex, { match = [] }] of routes.entries()) {
      for (const [index, { gateways: matchGateways = [] }] of match.entries()) {
        if (
          matchGateways.length === 0 ||
          matchGateways.some((chosenGateway) => boundGateways.has(qualifiedName(chosenGateway, config)))
        )
          continue;
        yield {
          ...{ code: 'GATEWAY_NOT_FOUND', config, field: `spec.${list}[${routeIndex}].match[${index}].gateways` },
          message: `none of ${matchGateways.join(', ')} is a gateway of this object, so the match applies to no request: choose one of ${[...boundGateways].join(', ')}, or add it to spec.gateways`,
        };
      }
    }
  }
}

function missingGateway(
  config: Config<VirtualService>,
  index: number,
  name: string,
  otherGateways: readonly Config<Gateway>[],
  { knownObjects }: CheckSources,
): ConfigWarning | undefined {
  const [other] = otherGateways;
  const isMissing =
    (other === undefined || !knownObjects.areFromFiles) &&
    knownObjects.isComplete('Gateway', name.slice(0, name.indexOf('/')));
  if (other === undefined && !isMissing) return undefined;
  const advice =
    other === undefined
      ? 'correct the name (namespace/name of another namespace)'
      : `write ${other.namespace}/${other.name}, if that one is meant`;
  return {
    ...{ code: 'GATEWAY_NOT_FOUND', config, field: `spec.gateways[${index}]` },
    message: `${isMissing ? 'there is' : 'these files contain'} no Gateway ${name}, so these routes apply at no gateway: ${advice}, or create the Gateway`,
    ...(other && { other: { config: other } }),
  };
}

function* unservedHosts(
  config: Config<VirtualService>,
  gateway: Config<Gateway>,
  { context }: CheckSources,
): Generator<ConfigWarning> {
  const servedHosts = gateway.spec.servers.flatMap(({ hosts }) => hosts.map((host) => servedHost(host, gateway)));
  const reachableHosts = servedHosts.filter(({ namespace }) => namespace === '*' || namespace === config.namespace);
  for (const [index, writtenHost] of config.spec.hosts.entries()) {
    const host = context.hostNames.qualify(writtenHost, config.namespace);
    if (
      reachableHosts.some(
        (candidate) => hostsOverlap(host, candidate.host) || hostsOverlap(writtenHost, candidate.host),
      )
    )
      continue;
    const isServedToOthers = servedHosts.some((candidate) => hostsOverlap(host, candidate.host));
    const reason = isServedToOthers
      ? `does not let VirtualServices of namespace ${config.namespace} serve ${writtenHost}: list ${config.namespace}/${writtenHost} in servers.hosts`
      : `serves ${listHosts(servedHosts)} and not ${writtenHost}: add the host to a server, or correct it here`;
    yield {
      ...{ code: 'HOST_NOT_IN_GATEWAY', config, field: `spec.hosts[${index}]` },
      message: `Gateway ${gateway.namespace}/${gateway.name} ${reason}`,
      other: { config: gateway, field: 'spec.servers' },
    };
  }
}

interface ServedHost {
  readonly namespace: string;
  readonly host: string;
}

function servedHost(writtenHost: string, gateway: Config<Gateway>): ServedHost {
  const [namespace, host] = writtenHost.includes('/') ? writtenHost.split('/', 2) : ['*', writtenHost];
  return { namespace: namespace === '.' ? gateway.namespace : namespace!, host: host! };
}

function listHosts(servedHosts: readonly ServedHost[]): string {
  const hosts = [...new Set(servedHosts.map(({ host }) => host))];
  return hosts.slice(0, maxHosts).join(', ') + (hosts.length > maxHosts ? ', …' : '');
}
