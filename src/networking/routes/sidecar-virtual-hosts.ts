/** The virtual hosts of one sidecar route configuration: services, and the virtual services over them (§8.5). */
import { VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import { isHostWithin, isWildcard } from '../../model/fields/hostname.ts';
import { isHttp } from '../../model/fields/protocol.ts';
import { isHeadless, type ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { virtualAddresses } from '../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { EgressListenerScope, SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import { type Port, type Service, serviceKey } from '../../model/services/service.ts';
import { isAlias, serviceBehind } from '../../model/services/service-alias.ts';
import { ruleText, serviceText } from '../inputs/input-text.ts';
import type { Memory } from '../inputs/memory.ts';
import { originsOf, serviceOrigin, virtualServiceOrigins, withOrigins } from '../inputs/message-origin.ts';
import { Encodable } from '../messages/resource.ts';
import { aliasesOf, namedBy, virtualServiceOver } from '../traffic/alias.ts';
import { type Reach, reachOf } from '../traffic/reach.ts';
import { virtualHostName } from '../traffic/resource-names.ts';
import { virtualHost } from './configuration.ts';
import { domainsOf, type NamedService } from './domains.ts';
import { defaultRoute, type RouteContext, virtualServiceRoutes } from './route.ts';
import { destinationsOf, shapeTextFor } from './virtual-service-inputs.ts';

export interface RouteSelection {
  readonly egress: EgressListenerScope;
  /** What matches on a port are compared with; 0: the listener serves all ports. */
  readonly listenerPort: number;
  /** Only services of this port; absent: of all. */
  readonly port?: number;
  /** Only this service: whatever name a client used, it meant this one. */
  readonly host?: string;
}

/** A virtual host, encoded once for all route configurations that have it. */
export interface MadeVirtualHost {
  readonly name: string;
  readonly domains: readonly string[];
  readonly part: Encodable;
  readonly dependsOn: readonly ConfigKey[];
}

/** Host names that no registry knows are served on this port alone. */
const portOfUnknownHosts = 80;

/** What all virtual hosts of a configuration have in common. */
interface Surroundings {
  readonly selection: RouteSelection;
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly scope: SidecarScope;
  readonly memory: Memory;
}

/** What one virtual host is made for. */
interface Wanted extends NamedService {
  readonly port: number;
  readonly listenerPort: number;
  /** The services of the name, none for a name that only a virtual service knows. */
  readonly services: readonly Service[];
  /** Services that are another name for it. */
  readonly aliasServices: readonly Service[];
  /** Set where the name is one of these, with routes of its own. */
  readonly alias?: Service;
  /** Absent: the service's default route. */
  readonly over: ResolvedVirtualService | undefined;
  readonly servicePort?: Port;
}

/** In the order in which they claim domains: the first to want one has it. */
export function sidecarVirtualHosts(around: Surroundings): MadeVirtualHost[] {
  const { selection, scope } = around;
  const byHost = oldestByHost(selection.egress.virtualServices);
  const claimed = new Set<string>();
  const hosts: MadeVirtualHost[] = [];
  const claim = (wanted: Wanted): void => {
    const made = makeVirtualHost(wanted, around);
    // An empty list would answer 404 to what another virtual host could serve.
    if (made === undefined) return;
    const free = made.domains.every((domain) => !claimed.has(domain))
      ? made
      : withDomains(
          made,
          made.domains.filter((domain) => !claimed.has(domain)),
        );
    if (free === undefined) return;
    for (const domain of free.domains) claimed.add(domain);
    hosts.push(free);
  };

  const groups = serviceGroups(around);
  const reach = reachOf(around.shape, around.push);
  const aliases = aliasesOf(selection.egress, scope);
  for (const { service, services, port, addresses } of groups) {
    const over = virtualServiceOver([service], byHost);
    const names = (aliases.get(service.hostname) ?? []).map((alias) => nameOf(alias, over, byHost, reach));
    const about = {
      port: port.number,
      listenerPort: selection.listenerPort || port.number,
      services,
      servicePort: port,
    };
    const aliasServices = names.filter(({ isOwn }) => !isOwn).map(({ alias }) => alias);
    claim({ ...about, hostname: service.hostname, headless: isHeadless(service), addresses, aliasServices, over });
    for (const { alias, over: own } of names.filter(({ isOwn }) => isOwn)) {
      claim({ ...about, hostname: alias.hostname, addresses: [], aliasServices: [], alias, over: own });
    }
  }
  if (selection.host !== undefined) return hosts;
  const portOfHost = unknownHosts(selection, groups, scope);
  for (const [hostname, over] of byHost) {
    const port = portOfHost(hostname);
    if (port === undefined) continue;
    claim({ hostname, addresses: [], port, listenerPort: port, services: [], aliasServices: [], over });
  }
  return hosts;
}

/** What requests to another name of a service are routed by, and whether that is something else than by the service's own. */
function nameOf(
  alias: Service,
  ofService: ResolvedVirtualService | undefined,
  byHost: ReadonlyMap<string, ResolvedVirtualService>,
  reach: Reach,
) {
  const { chain, service, clustered } = namedBy(alias.hostname, reach);
  const over = virtualServiceOver(chain, byHost);
  return { alias, over, isOwn: over !== ofService || (over === undefined && clustered !== service) };
}

interface Remembered {
  readonly host: MadeVirtualHost | undefined;
  readonly dependsOn: readonly ConfigKey[];
}

/** With all domains that it wants. Undefined when no route of it holds for the proxy. */
function makeVirtualHost(wanted: Wanted, { selection, shape, push, memory }: Surroundings) {
  const { hostname, port, listenerPort, services, aliasServices, alias, over, servicePort, addresses } = wanted;
  const aliases = aliasServices.map((alias) => alias.hostname);
  const text = services.map(serviceText).join(' ') || hostname;
  const named = `${text} ${addresses.join()} ${aliases.join()} ${alias?.hostname ?? ''}`;
  const proxyDomain = shape.dnsDomain;
  const allPorts = selection.port === undefined;
  const sole = selection.host !== undefined && alias === undefined;
  const about = `${port} ${listenerPort} ${allPorts} ${sole} ${proxyDomain} ${shape.configNamespace}`;
  const rules = push.destinationRulesSelecting(shape.configNamespace, shape.labels);
  const key = `${named} ${about} ${ruleText(over)} ${shapeTextFor(over, shape)} ${rules}`;
  const reach = reachOf(shape, push);
  const hosts = over === undefined ? [hostname] : destinationsOf(over);
  const inputs: unknown[] = [...services, ...aliasServices, alias, over, push.mesh];
  for (const host of hosts) {
    // What the name stands for, step by step, and the rule for each.
    for (const one of namedBy(host, reach).chain) inputs.push(one, reach.destinationRuleFor(one));
    inputs.push(undefined);
  }
  return memory.recall('RDS', key, inputs, (): Remembered => {
    const others = alias === undefined ? aliasServices : [alias];
    const dependsOn: ConfigKey[] = [...services.slice(0, 1), ...others].map(serviceKey);
    const context: RouteContext = {
      shape,
      gateway: 'mesh',
      listenerPort,
      reach,
      meshRetry: push.mesh.defaultHttpRetryPolicy,
      dependsOn,
    };
    const routes =
      over === undefined
        ? [defaultRoute(services[0]!, servicePort!, hostname, context)]
        : virtualServiceRoutes(over, context);
    if (routes.length === 0) return { host: undefined, dependsOn };
    const name = virtualHostName(hostname, port);
    const { absoluteNames } = push.features;
    const domains = sole
      ? ['*']
      : domainsOf({ ...wanted, aliases }, { proxyDomain, absoluteNames, ...(allPorts && { port }) });
    const host = withOrigins(virtualHost(name, domains, routes), [
      ...[...services, ...others].flatMap(serviceOrigin),
      ...virtualServiceOrigins(over),
    ]);
    const part = new Encodable(VirtualHostSchema, host);
    return { host: { name, domains, part, dependsOn }, dependsOn };
  }).host;
}

/** What others have claimed taken away; kept, because the same services claim the same again. */
function withDomains(made: MadeVirtualHost, domains: readonly string[]): MadeVirtualHost | undefined {
  if (domains.length === 0) return undefined;
  const id = domains.join();
  let ofHost = narrowed.get(made);
  if (ofHost?.id !== id) {
    const whole = made.part.message as ReturnType<typeof virtualHost>;
    const host = withOrigins(virtualHost(made.name, domains, whole.routes), originsOf(whole));
    const part = new Encodable(VirtualHostSchema, host);
    ofHost = { id, host: { ...made, domains, part } };
    narrowed.set(made, ofHost);
  }
  return ofHost.host;
}

const narrowed = new WeakMap<MadeVirtualHost, { readonly id: string; readonly host: MadeVirtualHost }>();

interface ServiceGroup {
  readonly service: Service;
  /** All services of the host and port: a ServiceEntry makes one for each of its addresses. */
  readonly services: readonly Service[];
  readonly port: Port;
  /** Of all those services. */
  readonly addresses: readonly string[];
}

function serviceGroups({ selection, shape, push }: Surroundings): readonly ServiceGroup[] {
  const { egress, port: wanted, host } = selection;
  const groups = new Map<string, ServiceGroup & { services: Service[]; addresses: string[] }>();
  for (const service of egress.services) {
    if (isAlias(service) || (host !== undefined && service.hostname !== host)) continue;
    for (const port of service.ports) {
      if (wanted !== undefined && port.number !== wanted) continue;
      if (!isHttp(port.protocol) && port.protocol !== 'unsupported') continue;
      const key = virtualHostName(service.hostname, port.number);
      const group = groups.get(key);
      const addresses = virtualAddresses(service, shape, push.features);
      if (group === undefined) groups.set(key, { service, services: [service], port, addresses: [...addresses] });
      else {
        group.services.push(service);
        group.addresses.push(...addresses);
      }
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
function unknownHosts(
  selection: RouteSelection,
  groups: readonly ServiceGroup[],
  scope: SidecarScope,
): (hostname: string) => number | undefined {
  const { services } = selection.egress;
  const behind = (service: Service) => serviceBehind(service, (host) => scope.serviceByHostname(host));
  // A name that stands for nothing in the mesh is nobody's.
  const registered = new Set(
    services.filter((service) => !isAlias(service) || behind(service) !== undefined).map(({ hostname }) => hostname),
  );
  const wildcards = groups.filter(({ service }) => isWildcard(service.hostname));
  const onUnknownPort = selection.port === undefined || selection.port === portOfUnknownHosts;
  return (hostname) => {
    if (registered.has(hostname)) return undefined;
    const wider = wildcards.find(({ service }) => isHostWithin(hostname, service.hostname));
    if (wider !== undefined) return wider.port.number;
    // Only a wildcard can have other names within it.
    if (isWildcard(hostname) && services.some((service) => isHostWithin(service.hostname, hostname))) return undefined;
    return onUnknownPort ? portOfUnknownHosts : undefined;
  };
}
