/** Reports missing hosts, ports and subsets of destinations in VirtualServices and of egress proxies in Sidecars. */
import type { Config } from '../../../model/config/config.ts';
import type { Destination, VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { exportSet, isExportedTo } from '../../../model/services/visibility.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';
import { SubsetsOfHosts } from './subsets-of-hosts.ts';

export const checkDestinations: ConfigCheck = function* (sources) {
  const subsets = yield* SubsetsOfHosts.build(sources);
  const gatewayPorts = new Map(
    sources.configs.Gateway.map(({ namespace, name, spec }) => [
      `${namespace}/${name}`,
      spec.servers.map(({ port }) => port.number),
    ]),
  );
  for (const config of sources.configs.VirtualService) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    const ports = listenerPorts(config, gatewayPorts);
    for (const { destination, field } of destinationsOf(config.spec)) {
      yield warningOf(config, destination, field, ports, subsets, sources);
    }
  }
  for (const config of sources.configs.Sidecar) {
    yield undefined;
    const { egressProxy } = config.spec.outboundTrafficPolicy ?? {};
    if (!isWrittenConfig(config) || egressProxy === undefined) continue;
    yield warningOf(config, egressProxy, 'spec.outboundTrafficPolicy.egressProxy', [], subsets, sources);
  }
};

interface DestinationField {
  readonly destination: Destination;
  readonly field: string;
}

export function* destinationsOf({ http = [], tls = [], tcp = [] }: VirtualService): Generator<DestinationField> {
  for (const [index, { route = [], mirror, mirrors = [] }] of http.entries()) {
    const path = `spec.http[${index}]`;
    for (const [destinationIndex, { destination }] of route.entries())
      yield { destination, field: `${path}.route[${destinationIndex}].destination` };
    if (mirror !== undefined) yield { destination: mirror, field: `${path}.mirror` };
    for (const [destinationIndex, { destination }] of mirrors.entries())
      yield { destination, field: `${path}.mirrors[${destinationIndex}].destination` };
  }
  for (const [list, routes] of Object.entries({ tls, tcp })) {
    for (const [index, { route = [] }] of routes.entries()) {
      for (const [destinationIndex, { destination }] of route.entries())
        yield { destination, field: `spec.${list}[${index}].route[${destinationIndex}].destination` };
    }
  }
}

function warningOf(
  config: Config,
  { host: destinationHost, port, subset }: Destination,
  field: string,
  ports: readonly number[],
  subsets: SubsetsOfHosts,
  sources: CheckSources,
): ConfigWarning | undefined {
  const { context, hosts, knownObjects } = sources;
  const host = context.hostNames.qualify(destinationHost, config.namespace);
  if (hosts.isMissingHost(host)) {
    const message = `no service has the host ${host}, so requests for it fail (503): ${hosts.correctionOf(host)}`;
    return { code: 'HOST_NOT_FOUND', config, field: `${field}.host`, message };
  }
  const service = context.serviceFor(host, config.namespace);
  if (service === undefined) return hiddenWarning(config, host, field, sources);
  if (isAlias(service)) return undefined;
  const numbers = service.ports.map(({ number }) => number);
  const numbersText = numbers.join(', ');
  if (port !== undefined && !numbers.includes(port.number)) {
    const message = `${host} has no port ${port.number}, so requests for it fail (503): choose one of ${numbersText}`;
    return { code: 'PORT_NOT_FOUND', config, field: `${field}.port.number`, message };
  }
  const unmatchedPort =
    port === undefined && numbers.length > 1 && ports.find((portNumber) => !numbers.includes(portNumber));
  if (unmatchedPort) {
    const message = `${host} has the ports ${numbersText} and not the gateway's port ${unmatchedPort}, so requests fail (503): add port.number`;
    return { code: 'PORT_NOT_CHOSEN', config, field, message };
  }
  if (subset === undefined || subsets.has(service.hostname, subset) || !knownObjects.isComplete('DestinationRule'))
    return undefined;
  return subsetWarning(config, field, subset, service, subsets);
}

/** Reported only for services in the namespace of the routes. */
function hiddenWarning(
  config: Config,
  host: string,
  field: string,
  { context, configs, hosts }: CheckSources,
): ConfigWarning | undefined {
  const [hiddenService] = hosts.servicesOf(host);
  if (hiddenService === undefined || config.kind !== 'VirtualService') return undefined;
  const { namespace, spec } = config as Config<VirtualService>;
  const { exportTo, gateways = ['mesh'] } = spec;
  const exportNamespaces = exportSet(namespace, exportTo, context.mesh.defaultVirtualServiceExportTo, context.mesh);
  if (!gateways.includes('mesh') || !isExportedTo(exportNamespaces, namespace, namespace)) return undefined;
  const routedServices = spec.hosts.flatMap((writtenHost) =>
    hosts.servicesOf(context.hostNames.qualify(writtenHost, namespace)),
  );
  if (!routedServices.some((routedService) => routedService.namespace === namespace)) return undefined;
  const hiddenObject = objectOfService(hiddenService, configs);
  return {
    ...{ code: 'HOST_NOT_FOUND', config, field: `${field}.host` },
    message: `${host} is not exported to namespace ${namespace}, so requests of clients there fail (503): add the namespace to its exportTo`,
    ...(hiddenObject && { other: { config: hiddenObject } }),
  };
}

function subsetWarning(
  config: Config,
  field: string,
  subset: string,
  { hostname }: Service,
  subsets: SubsetsOfHosts,
): ConfigWarning {
  const rule = subsets.ruleOf(hostname);
  const defined = subsets.namesOf(hostname);
  const advice =
    rule === undefined
      ? `create a DestinationRule with the host ${hostname} and this subset`
      : `add it to DestinationRule ${rule.namespace}/${rule.name}${defined.length > 0 ? `, or use one of ${defined.join(', ')}` : ''}`;
  return {
    ...{ code: 'SUBSET_NOT_FOUND', config, field: `${field}.subset` },
    message: `no DestinationRule of ${hostname} defines subset ${subset}, so requests for it fail (503): ${advice}`,
    ...(rule && { other: { config: rule, field: 'spec.subsets' } }),
  };
}

function listenerPorts(
  { namespace, spec: { gateways = [] } }: Config<VirtualService>,
  portsByName: ReadonlyMap<string, readonly number[]>,
): readonly number[] {
  return gateways.flatMap((name) => portsByName.get(name.includes('/') ? name : `${namespace}/${name}`) ?? []);
}
