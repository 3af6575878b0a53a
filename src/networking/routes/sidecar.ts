/** Route configurations of a sidecar's outbound listeners (spec/discovery.md §8.5). */
import { VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { type ConfigKey, compareText, configKeyOf } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { addressingKey } from '../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import { type Memory, noMemory } from '../inputs/memory.ts';
import { sidecarOrigin, withOrigins } from '../inputs/message-origin.ts';
import { isUnixSocket, unixSocketPath } from '../messages/address.ts';
import { Encodable, type Resource, ResourceOfParts } from '../messages/resource.ts';
import { requestFallbackCluster } from '../traffic/outbound-fallback.ts';
import { httpProxyRoute } from '../traffic/resource-names.ts';
import { routeConfiguration } from './configuration.ts';
import { fallbackHost } from './fallback.ts';
import { type MadeVirtualHost, type RouteSelection, sidecarVirtualHosts } from './sidecar-virtual-hosts.ts';
import { shapeTextFor } from './virtual-service-inputs.ts';

/** Number of `virtual_hosts` in a RouteConfiguration. */
const virtualHostsField = 2;

/** The configuration of a name; one without virtual hosts for a name that no listener of the proxy uses. */
export function sidecarRoutes(name: string, shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource {
  const scope = push.sidecarScopeFor(shape);
  const selection = selectionOf(name, scope);
  const hosts = selection === undefined ? [] : sidecarVirtualHosts({ selection, shape, push, scope, memory });
  const made = selection?.host === undefined ? completed(hosts, selection, scope, memory) : hosts;
  const allPorts = selection !== undefined && selection.port === undefined;
  // The same virtual hosts make the same configuration, whoever it is for.
  const client = `${shape.configNamespace} ${shape.dnsDomain} ${addressingKey(shape)}`;
  const key = `${name} ${allPorts} ${client} ${labelsThatCount(selection, shape)}`;
  const make = (): Resource => {
    const dependsOn: ConfigKey[] = scope.sidecar ? [configKeyOf(scope.sidecar)] : [];
    for (const host of made) dependsOn.push(...host.dependsOn);
    const message = routeConfiguration(name, [], allPorts);
    const whole = { name, schema: RouteConfigurationSchema, message, dependsOn };
    return new ResourceOfParts(
      whole,
      virtualHostsField,
      made.map(({ part }) => part),
    );
  };
  // A name under which there is no host is not remembered: there is no end of such names.
  if (hosts.length === 0) return make();
  return memory.recall('RDS', key, [scope.sidecar, ...made.map(({ part }) => part)], make);
}

/** Sorted, and with one that takes what no other does. */
function completed(
  hosts: readonly MadeVirtualHost[],
  selection: RouteSelection | undefined,
  scope: SidecarScope,
  memory: Memory,
): MadeVirtualHost[] {
  const sorted = [...hosts].sort((a, b) => compareText(a.name, b.name));
  if (selection === undefined || hosts.some((host) => host.domains.includes('*'))) return sorted;
  const { mode } = scope.outboundTrafficPolicy;
  const cluster = requestFallbackCluster(scope.outboundTrafficPolicy, scope);
  const fallback = memory.recall('RDS', `fallback ${mode} ${cluster}`, [], (): MadeVirtualHost => {
    const host = withOrigins(fallbackHost(scope), sidecarOrigin(scope, 'outboundTrafficPolicy'));
    return { name: host.name, domains: host.domains, part: new Encodable(VirtualHostSchema, host), dependsOn: [] };
  });
  return [...sorted, fallback];
}

/** Labels of the proxy, if any virtual service looks at them. */
function labelsThatCount(selection: RouteSelection | undefined, shape: ProxyShape): string {
  return selection?.egress.virtualServices.map((service) => shapeTextFor(service, shape)).find(Boolean) ?? '';
}

/** `80`, `http_proxy`, `/run/egress.sock`, `mongo.example.com:27017`. */
function selectionOf(name: string, scope: SidecarScope): RouteSelection | undefined {
  const catchAll = scope.egressListeners.find((listener) => listener.port === undefined);
  if (name === httpProxyRoute) return catchAll && { egress: catchAll, listenerPort: 0 };
  if (/^\d+$/.test(name)) {
    const number = Number(name);
    const own = scope.egressListeners.find((listener) => listener.port?.number === number);
    const egress = own ?? catchAll;
    if (egress === undefined) return undefined;
    if (own?.port?.protocol === 'HTTP_PROXY') return { egress, listenerPort: 0 };
    return { egress, listenerPort: number, port: number };
  }
  const socket = scope.egressListeners.find(
    ({ bind }) => bind !== undefined && isUnixSocket(bind) && unixSocketPath(bind) === name,
  );
  if (socket !== undefined) return { egress: socket, listenerPort: socket.port?.number ?? 0 };
  const colon = name.lastIndexOf(':');
  const port = Number(name.slice(colon + 1));
  if (colon <= 0 || !Number.isInteger(port) || port === 0) return undefined;
  const egress = scope.egressListeners.find((listener) => listener.port?.number === port) ?? catchAll;
  return egress && { egress, listenerPort: port, port, host: name.slice(0, colon) };
}
