/** The virtual hosts of one sidecar route configuration: services, and the virtual services over them (§8.5). */
import type { VirtualHost } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { ConfigKey } from '../../model/config.ts';
import { isHostWithin, isWildcard, mostSpecific } from '../../model/hostname.ts';
import { isHttp } from '../../model/protocol.ts';
import type { ProxyView } from '../../model/proxy.ts';
import type { PushContext } from '../../model/push-context.ts';
import type { ResolvedVirtualService } from '../../model/resolved-rules.ts';
import { type Port, type Service, serviceKey } from '../../model/service.ts';
import type { EgressListenerScope, SidecarScope } from '../../model/sidecar-scope.ts';
import { virtualHostName } from '../names.ts';
import { isHeadless } from '../proxy-shape.ts';
import { virtualHost } from './configuration.ts';
import { domainsOf, type NamedService } from './domains.ts';
import { defaultRoute, type RouteContext, virtualServiceRoutes } from './route.ts';

export interface RouteSelection {
  readonly egress: EgressListenerScope;
  /** What matches on a port are compared with; 0: the listener serves all ports. */
  readonly listenerPort: number;
  /** Only services of this port; absent: of all. */
  readonly port?: number;
  /** Only this service. */
  readonly host?: string;
}

/** Host names that no registry knows are served on this port alone. */
const portOfUnknownHosts = 80;

/** In the order in which they claim domains: the first to want one has it. */
export function sidecarVirtualHosts(
  selection: RouteSelection,
  view: ProxyView,
  push: PushContext,
  scope: SidecarScope,
  dependsOn: ConfigKey[],
): VirtualHost[] {
  const { egress } = selection;
  const byHost = oldestByHost(egress.virtualServices);
  const context: RouteContext = {
    view,
    gateway: 'mesh',
    listenerPort: selection.listenerPort,
    reach: scope,
    meshRetry: push.mesh.defaultHttpRetryPolicy,
    dependsOn,
  };
  const claimed = new Set<string>();
  const hosts: VirtualHost[] = [];
  const claim = (named: NamedService, port: number, routes: VirtualHost['routes']): void => {
    // An empty list would answer 404 to what another virtual host could serve.
    if (routes.length === 0) return;
    const explicitPort = selection.port === undefined ? { port } : {};
    const domains = domainsOf(named, { proxyDomain: view.dnsDomain, ...explicitPort }).filter(
      (domain) => !claimed.has(domain),
    );
    if (domains.length === 0) return;
    for (const domain of domains) claimed.add(domain);
    hosts.push(virtualHost(virtualHostName(named.hostname, port), domains, routes));
  };

  const groups = serviceGroups(selection);
  for (const { service, port, addresses } of groups) {
    dependsOn.push(serviceKey(service));
    const over = mostSpecific(service.hostname, byHost);
    const ofPort = { ...context, listenerPort: selection.listenerPort || port.number };
    const routes =
      over === undefined ? [defaultRoute(service, port, ofPort)] : virtualServiceRoutes(byHost.get(over)!, ofPort);
    claim({ hostname: service.hostname, addresses, headless: isHeadless(service) }, port.number, routes);
  }
  if (selection.host !== undefined) return hosts;
  const registered = new Set(egress.services.map((service) => service.hostname));
  for (const [hostname, virtualService] of byHost) {
    const port = registered.has(hostname) ? undefined : portOfHost(hostname, selection, groups);
    if (port === undefined) continue;
    const routes = virtualServiceRoutes(virtualService, { ...context, listenerPort: port });
    claim({ hostname, addresses: [] }, port, routes);
  }
  return hosts;
}

interface ServiceGroup {
  readonly service: Service;
  readonly port: Port;
  /** Of all services of the host: a ServiceEntry makes one for each of its addresses. */
  readonly addresses: readonly string[];
}

function serviceGroups({ egress, port: wanted, host }: RouteSelection): readonly ServiceGroup[] {
  const groups = new Map<string, ServiceGroup & { addresses: string[] }>();
  for (const service of egress.services) {
    if (host !== undefined && service.hostname !== host) continue;
    for (const port of service.ports) {
      if (wanted !== undefined && port.number !== wanted) continue;
      if (!isHttp(port.protocol) && port.protocol !== 'unsupported') continue;
      const key = virtualHostName(service.hostname, port.number);
      const group = groups.get(key);
      const addresses = new Set([...service.addresses, service.defaultAddress]);
      if (group === undefined) groups.set(key, { service, port, addresses: [...addresses] });
      else group.addresses.push(...addresses);
    }
  }
  // A client that names no port means 80: that service is the first to claim the bare name.
  return [...groups.values()].sort((a, b) => Number(b.port.number === 80) - Number(a.port.number === 80));
}

/** Of several virtual services of one host the oldest holds; the others are ignored (§8.5). */
function oldestByHost(services: readonly ResolvedVirtualService[]): Map<string, ResolvedVirtualService> {
  const byHost = new Map<string, ResolvedVirtualService>();
  for (const service of services) {
    if (!service.config.spec.http?.length) continue;
    for (const host of service.config.spec.hosts) if (!byHost.has(host)) byHost.set(host, service);
  }
  return byHost;
}

/**
 * The port on which a virtual service's host is served that no service has as its name: a name under a wildcard
 * service has that one's port; a name that no service covers has port 80; a wildcard over services has none, because
 * they have their own virtual hosts.
 */
function portOfHost(hostname: string, selection: RouteSelection, groups: readonly ServiceGroup[]): number | undefined {
  const { services } = selection.egress;
  const wider = groups.find(({ service }) => isWildcard(service.hostname) && isHostWithin(hostname, service.hostname));
  if (wider !== undefined) return wider.port.number;
  if (services.some((service) => isHostWithin(service.hostname, hostname))) return undefined;
  const onUnknownPort = selection.port === undefined || selection.port === portOfUnknownHosts;
  return onUnknownPort ? portOfUnknownHosts : undefined;
}
