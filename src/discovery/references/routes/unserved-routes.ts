/**
 * Reports `http`, `tls` or `tcp` lists of VirtualServices that no port uses. The protocol of a server or service determines which list applies.
 */
import type { Config } from '../../../model/config/config.ts';
import { type ConfigSet, objectsByName } from '../../../model/config/config-set.ts';
import { hostsOverlap, isWildcard } from '../../../model/fields/hostname.ts';
import { type ApplicationProtocol, isHttp, isTls } from '../../../model/fields/protocol.ts';
import type { Gateway, Server } from '../../../model/kinds/gateway/gateway.ts';
import type { VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { isPassthrough, serverKindOf } from '../../../networking/gateway/placed-server.ts';
import {
  type CheckSources,
  type ConfigCheck,
  type ConfigWarning,
  isWrittenConfig,
  type ObjectLocation,
} from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';

type RouteList = 'http' | 'tls' | 'tcp';

interface RoutedPort {
  readonly number: number;
  readonly routeLists: readonly RouteList[];
  readonly text: string;
  readonly location: ObjectLocation | undefined;
}

const maxPorts = 3;

export const checkUnservedRoutes: ConfigCheck = function* (sources) {
  const gateways = objectsByName(sources.configs.Gateway);
  const hasHttpProxy = haveHttpProxy(sources);
  for (const config of sources.configs.VirtualService) {
    yield undefined;
    if (!isWrittenConfig(config) || config.spec.hosts.length === 0) continue;
    const ports = portsOf(config, gateways, hasHttpProxy, sources);
    if (ports === undefined || ports.length === 0) continue;
    for (const list of ['http', 'tls', 'tcp'] as const) {
      if ((config.spec[list] ?? []).length === 0) continue;
      if (ports.some(({ routeLists }) => routeLists.includes(list))) yield* matchesOfNoPort(config, list, ports);
      else yield listWarning(config, list, ports);
    }
  }
};

/** `undefined` if there may be further ports. */
function portsOf(
  config: Config<VirtualService>,
  gateways: ReadonlyMap<string, Config<Gateway>>,
  hasHttpProxy: boolean,
  sources: CheckSources,
): readonly RoutedPort[] | undefined {
  const routedPorts: RoutedPort[] = [];
  const { gateways: names = [] } = config.spec;
  for (const name of names.length === 0 ? ['mesh'] : names) {
    const gateway = gateways.get(name.includes('/') ? name : `${config.namespace}/${name}`);
    // An HTTP proxy receives requests for hosts and ports of all protocols.
    if (name === 'mesh' && hasHttpProxy) return undefined;
    const ports = name === 'mesh' ? servicePorts(config, sources) : gateway && serverPorts(config, gateway, sources);
    if (ports === undefined) return undefined;
    routedPorts.push(...ports);
  }
  return routedPorts;
}

function haveHttpProxy({ context, configs }: CheckSources): boolean {
  const listeners = configs.Sidecar.flatMap(({ spec }) => spec.egress ?? []);
  return context.mesh.proxyHttpPort !== 0 || listeners.some(({ port }) => port?.protocol === 'HTTP_PROXY');
}

function serverPorts(
  config: Config<VirtualService>,
  gateway: Config<Gateway>,
  { context }: CheckSources,
): readonly RoutedPort[] {
  const hosts = config.spec.hosts.flatMap((host) => [host, context.hostNames.qualify(host, config.namespace)]);
  return gateway.spec.servers.flatMap((server, index) => {
    const isHostServed = server.hosts.some((writtenHost) => {
      const [namespace, host] = writtenHost.includes('/') ? writtenHost.split('/', 2) : ['*', writtenHost];
      const isForRouteNamespace =
        namespace === '*' || (namespace === '.' ? gateway.namespace : namespace) === config.namespace;
      return isForRouteNamespace && hosts.some((gatewayHost) => hostsOverlap(gatewayHost, host!));
    });
    if (!isHostServed) return [];
    const { number, protocol } = server.port;
    const mode = server.tls === undefined ? '' : ` with TLS mode ${server.tls.mode}`;
    return {
      ...{ number, routeLists: listsOfServer(server) },
      text: `port ${number} of Gateway ${gateway.namespace}/${gateway.name} is ${protocol}${mode}`,
      location: { config: gateway, field: `spec.servers[${index}]` },
    };
  });
}

function listsOfServer(server: Server): readonly RouteList[] {
  const kind = serverKindOf(server);
  if (kind === 'http') return ['http'];
  if (server.tls?.mode === 'AUTO_PASSTHROUGH') return [];
  if (kind === 'tcp') return ['tcp'];
  if (isPassthrough(server)) return ['tls'];
  return server.port.protocol === 'HTTPS' ? ['http'] : ['tcp'];
}

/** `undefined` if a host may have no service, or unknown services. */
function servicePorts(
  config: Config<VirtualService>,
  { context, configs, hosts }: CheckSources,
): readonly RoutedPort[] | undefined {
  const routedPorts: RoutedPort[] = [];
  for (const writtenHost of config.spec.hosts) {
    const host = context.hostNames.qualify(writtenHost, config.namespace);
    const services = hosts.servicesOf(host);
    if (isWildcard(host) || services.length === 0 || services.some(isAlias)) return undefined;
    for (const service of services) {
      for (const { number, protocol } of service.ports) {
        const portObject = serviceObject(service, configs);
        routedPorts.push({
          ...{ number, routeLists: listsOfProtocol(protocol), location: portObject },
          text: `port ${number} of ${host} is ${protocol}`,
        });
      }
    }
  }
  return routedPorts;
}

function serviceObject(
  service: Parameters<typeof objectOfService>[0],
  configs: Pick<ConfigSet, 'Service' | 'ServiceEntry'>,
): ObjectLocation | undefined {
  const config = objectOfService(service, configs);
  return config && { config, field: 'spec.ports' };
}

/** Lists that can apply. Without a protocol, the first bytes of a connection determine the list. */
function listsOfProtocol(protocol: ApplicationProtocol): readonly RouteList[] {
  if (protocol === 'unsupported') return ['http', 'tcp'];
  if (protocol === 'UDP') return [];
  if (isHttp(protocol)) return ['http'];
  return isTls(protocol) ? ['tls'] : ['tcp'];
}

const neededProtocols: Readonly<Record<RouteList, string>> = {
  http: 'HTTP, or HTTPS that the gateway terminates',
  tls: 'TLS or HTTPS that is passed through',
  tcp: 'TCP, or TLS that the gateway terminates',
};

function listWarning(config: Config<VirtualService>, list: RouteList, ports: readonly RoutedPort[]): ConfigWarning {
  const texts = [...new Set(ports.map(({ text }) => text))];
  const listText = texts.slice(0, maxPorts).join(', ') + (texts.length > maxPorts ? ', …' : '');
  const lists = [...new Set(ports.flatMap((port) => port.routeLists))];
  const advice = lists.length === 0 ? '' : `write ${lists.join(' or ')} routes, or `;
  const otherLocation = ports.find(({ location }) => location !== undefined)?.location;
  return {
    ...{ code: 'ROUTE_NOT_APPLIED', config, field: `spec.${list}` },
    message: `${list} routes need ${neededProtocols[list]}, and ${listText}, so these routes have no effect: ${advice}correct the protocol there`,
    ...(otherLocation && { other: otherLocation }),
  };
}

function* matchesOfNoPort(
  config: Config<VirtualService>,
  list: RouteList,
  ports: readonly RoutedPort[],
): Generator<ConfigWarning> {
  const numbers = new Set(ports.filter(({ routeLists }) => routeLists.includes(list)).map(({ number }) => number));
  for (const [index, { match = [] }] of (config.spec[list] ?? []).entries()) {
    for (const [matchIndex, { port }] of match.entries()) {
      if (port === undefined || numbers.has(port)) continue;
      const closestPort = ports.find(({ number }) => number === port) ?? ports[0];
      yield {
        ...{ code: 'ROUTE_NOT_APPLIED', config, field: `spec.${list}[${index}].match[${matchIndex}].port` },
        message: `${list} routes apply at port ${[...numbers].join(', ')} and not at ${port}, so the match has no effect: correct the port`,
        ...(closestPort?.location && { other: closestPort.location }),
      };
    }
  }
}
