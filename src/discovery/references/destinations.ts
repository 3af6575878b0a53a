/** Destinations of VirtualServices: host, port and subset exist (spec/discovery.md §8.6). */
import type { Config } from '../../model/config/config.ts';
import type { Destination, VirtualService } from '../../model/kinds/virtual-service.ts';
import type { Service } from '../../model/services/service.ts';
import { isAlias } from '../../model/services/service-alias.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWritten } from './config-warning.ts';
import { SubsetsOfHosts } from './subsets-of-hosts.ts';

export const checkDestinations: ConfigCheck = function* (sources) {
  const subsets = yield* SubsetsOfHosts.of(sources);
  const gatewayPorts = new Map(
    sources.configs.Gateway.map(({ namespace, name, spec }) => [
      `${namespace}/${name}`,
      spec.servers.map(({ port }) => port.number),
    ]),
  );
  for (const config of sources.configs.VirtualService) {
    yield undefined;
    if (!isWritten(config)) continue;
    const ports = listenerPorts(config, gatewayPorts);
    for (const { destination, field } of destinationsOf(config.spec)) {
      yield warningOf(config, destination, field, ports, subsets, sources);
    }
  }
};

/** A destination and its place. */
interface Written {
  readonly destination: Destination;
  readonly field: string;
}

export function* destinationsOf({ http = [], tls = [], tcp = [] }: VirtualService): Generator<Written> {
  for (const [index, { route = [], mirror, mirrors = [] }] of http.entries()) {
    const path = `spec.http[${index}]`;
    for (const [at, { destination }] of route.entries())
      yield { destination, field: `${path}.route[${at}].destination` };
    if (mirror !== undefined) yield { destination: mirror, field: `${path}.mirror` };
    for (const [at, { destination }] of mirrors.entries())
      yield { destination, field: `${path}.mirrors[${at}].destination` };
  }
  for (const [list, routes] of Object.entries({ tls, tcp })) {
    for (const [index, { route = [] }] of routes.entries()) {
      for (const [at, { destination }] of route.entries())
        yield { destination, field: `spec.${list}[${index}].route[${at}].destination` };
    }
  }
}

function warningOf(
  config: Config<VirtualService>,
  { host: written, port, subset }: Destination,
  field: string,
  ports: readonly number[],
  subsets: SubsetsOfHosts,
  { context, hosts }: CheckSources,
): ConfigWarning | undefined {
  const host = context.hostNames.qualified(written, config.namespace);
  if (hosts.isMissing(host)) {
    const message = `no service has the host ${host}, so requests for it fail (503): correct the name, or create the Service or ServiceEntry`;
    return { code: 'HOST_NOT_FOUND', config, field: `${field}.host`, message };
  }
  const service = context.serviceFor(host, config.namespace);
  // Where the service is not exported to this namespace, clients of the routes may be of one that sees it.
  if (service === undefined || isAlias(service)) return undefined;
  const numbers = service.ports.map(({ number }) => number);
  const listed = numbers.join(', ');
  if (port !== undefined && !numbers.includes(port.number)) {
    const message = `${host} has no port ${port.number}, so requests for it fail (503): choose one of ${listed}`;
    return { code: 'PORT_NOT_FOUND', config, field: `${field}.port.number`, message };
  }
  const unmatched = port === undefined && numbers.length > 1 && ports.find((one) => !numbers.includes(one));
  if (unmatched) {
    const message = `${host} has the ports ${listed} and not the gateway's port ${unmatched}, so requests fail (503): add port.number`;
    return { code: 'PORT_NOT_CHOSEN', config, field, message };
  }
  return subset === undefined ? undefined : subsetWarning(config, field, subset, service, subsets);
}

function subsetWarning(
  config: Config<VirtualService>,
  field: string,
  subset: string,
  { hostname }: Service,
  subsets: SubsetsOfHosts,
): ConfigWarning | undefined {
  if (subsets.has(hostname, subset)) return undefined;
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

/** Ports of the gateways that the routes are bound to. */
function listenerPorts(
  { namespace, spec: { gateways = [] } }: Config<VirtualService>,
  byName: ReadonlyMap<string, readonly number[]>,
): readonly number[] {
  return gateways.flatMap((name) => byName.get(name.includes('/') ? name : `${namespace}/${name}`) ?? []);
}
