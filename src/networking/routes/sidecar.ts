/** Route configurations of a sidecar's outbound listeners (spec/discovery.md §8.5). */
import { create } from '@bufbuild/protobuf';
import { RouteSchema, type VirtualHost } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { type ConfigKey, compareText, configKeyOf } from '../../model/config.ts';
import type { ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import type { SidecarScope } from '../../model/sidecar-scope.ts';
import { isUnixSocket, unixSocketPath } from '../address.ts';
import { duration } from '../duration.ts';
import { httpProxyRoute } from '../names.ts';
import { fallbackCluster } from '../outbound-fallback.ts';
import { namedResource, type Resource } from '../resource.ts';
import { routeConfiguration, virtualHost } from './configuration.ts';
import { type RouteSelection, sidecarVirtualHosts } from './sidecar-virtual-hosts.ts';

/** The configuration of a name; one without virtual hosts for a name that no listener of the proxy uses. */
export function sidecarRoutes(name: string, view: ProxyView, push: PushContext): Resource {
  const scope = push.sidecarScopeFor(view);
  const dependsOn: ConfigKey[] = scope.sidecar ? [configKeyOf(scope.sidecar)] : [];
  const selection = selectionOf(name, scope);
  const hosts = selection === undefined ? [] : sidecarVirtualHosts(selection, view, push, scope, dependsOn);
  if (selection?.host !== undefined) {
    // The listener serves this service alone: whatever name the client used, it meant this one.
    const sole = hosts[0];
    const configuration = routeConfiguration(name, sole ? [{ ...sole, domains: ['*'] }] : []);
    return namedResource(RouteConfigurationSchema, configuration, dependsOn);
  }
  const sorted = [...hosts].sort((a, b) => compareText(a.name, b.name));
  if (selection !== undefined && !hosts.some((host) => host.domains.includes('*'))) sorted.push(fallbackHost(scope));
  const allPorts = selection !== undefined && selection.port === undefined;
  return namedResource(RouteConfigurationSchema, routeConfiguration(name, sorted, allPorts), dependsOn);
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

/** What no virtual host takes. */
function fallbackHost(scope: SidecarScope): VirtualHost {
  if (scope.outboundTrafficPolicy.mode === 'REGISTRY_ONLY') {
    const route = create(RouteSchema, {
      name: 'block_all',
      match: { pathSpecifier: { case: 'prefix', value: '/' } },
      action: { case: 'directResponse', value: { status: 502 } },
    });
    return virtualHost('block_all', ['*'], [route]);
  }
  const route = create(RouteSchema, {
    name: 'allow_any',
    match: { pathSpecifier: { case: 'prefix', value: '/' } },
    action: {
      case: 'route',
      value: {
        clusterSpecifier: { case: 'cluster', value: fallbackCluster(scope.outboundTrafficPolicy, scope) },
        timeout: duration(0),
        maxGrpcTimeout: duration(0),
      },
    },
  });
  return virtualHost('allow_any', ['*'], [route]);
}
