/** The virtual hosts of one sidecar route configuration: services, and the virtual services over them (§8.5). */
import { VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { ConfigKey } from '../../model/config.ts';
import { isHostWithin, isWildcard, mostSpecific } from '../../model/hostname.ts';
import { isHttp } from '../../model/protocol.ts';
import { isHeadless, type ProxyShape } from '../../model/proxy-shape.ts';
import type { PushContext } from '../../model/push-context.ts';
import type { ResolvedVirtualService } from '../../model/resolved-rules.ts';
import { type Port, type Service, serviceKey } from '../../model/service.ts';
import { virtualAddresses } from '../../model/service-addresses.ts';
import { aliasesByTarget, chainBehind, isAlias } from '../../model/service-alias.ts';
import type { EgressListenerScope, SidecarScope } from '../../model/sidecar-scope.ts';
import { ruleText, serviceText } from '../input-text.ts';
import type { Memory } from '../memory.ts';
import { virtualHostName } from '../names.ts';
import { originsOf, serviceOrigin, virtualServiceOrigins, withOrigins } from '../origin.ts';
import { reachOf } from '../reach.ts';
import { Encodable } from '../resource.ts';
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
  const aliases = aliasesOf(selection.egress, scope);
  for (const { service, services, port, addresses } of groups) {
    const over = mostSpecific(service.hostname, byHost);
    claim({
      hostname: service.hostname,
      addresses,
      headless: isHeadless(service),
      port: port.number,
      listenerPort: selection.listenerPort || port.number,
      services,
      aliasServices: aliases.get(service.hostname) ?? [],
      over: over === undefined ? undefined : byHost.get(over),
      servicePort: port,
    });
  }
  if (selection.host !== undefined) return hosts;
  const portOfHost = unknownHosts(selection, groups);
  for (const [hostname, over] of byHost) {
    const port = portOfHost(hostname);
    if (port === undefined) continue;
    claim({ hostname, addresses: [], port, listenerPort: port, services: [], aliasServices: [], over });
  }
  return hosts;
}

interface Remembered {
  readonly host: MadeVirtualHost | undefined;
  readonly dependsOn: readonly ConfigKey[];
}

/** With all domains that it wants. Undefined when no route of it holds for the proxy. */
function makeVirtualHost(wanted: Wanted, { selection, shape, push, scope, memory }: Surroundings) {
  const { hostname, port, listenerPort, services, aliasServices, over, servicePort, addresses } = wanted;
  const aliases = aliasServices.map((alias) => alias.hostname);
  const named = `${services.map(serviceText).join(' ') || hostname} ${addresses.join()} ${aliases.join()}`;
  const proxyDomain = shape.dnsDomain;
  const allPorts = selection.port === undefined;
  const sole = selection.host !== undefined;
  const about = `${port} ${listenerPort} ${allPorts} ${sole} ${proxyDomain} ${shape.configNamespace}`;
  const rules = push.destinationRulesSelecting(shape.configNamespace, shape.labels);
  const key = `${named} ${about} ${ruleText(over)} ${shapeTextFor(over, shape)} ${rules}`;
  const reach = reachOf(shape, push);
  const hosts = over === undefined ? [hostname] : destinationsOf(over);
  const inputs: unknown[] = [...services, ...aliasServices, over, push.mesh];
  for (const host of hosts) {
    const named = scope.serviceByHostname(host);
    const chain = named === undefined ? [] : chainBehind(named, (name) => scope.serviceByHostname(name));
    // What the name stands for, step by step, and the rule for the last of them.
    inputs.push(...chain, undefined, chain.at(-1) && reach.destinationRuleFor(chain.at(-1)!));
  }
  return memory.recall('RDS', key, inputs, (): Remembered => {
    const dependsOn: ConfigKey[] = [...services.slice(0, 1), ...aliasServices].map(serviceKey);
    const context: RouteContext = {
      shape,
      gateway: 'mesh',
      listenerPort,
      reach,
      meshRetry: push.mesh.defaultHttpRetryPolicy,
      dependsOn,
    };
    const routes =
      over === undefined ? [defaultRoute(services[0]!, servicePort!, context)] : virtualServiceRoutes(over, context);
    if (routes.length === 0) return { host: undefined, dependsOn };
    const name = virtualHostName(hostname, port);
    const { absoluteNames } = push.features;
    const domains = sole
      ? ['*']
      : domainsOf({ ...wanted, aliases }, { proxyDomain, absoluteNames, ...(allPorts && { port }) });
    const host = withOrigins(virtualHost(name, domains, routes), [
      ...[...services, ...aliasServices].flatMap(serviceOrigin),
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

const aliasesOfListener = new WeakMap<EgressListenerScope, ReadonlyMap<string, readonly Service[]>>();

/** Services of a listener that are another name for a service, by the host name of that. */
function aliasesOf(egress: EgressListenerScope, scope: SidecarScope): ReadonlyMap<string, readonly Service[]> {
  let known = aliasesOfListener.get(egress);
  if (known === undefined) {
    known = aliasesByTarget(egress.services, (host) => scope.serviceByHostname(host));
    aliasesOfListener.set(egress, known);
  }
  return known;
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
): (hostname: string) => number | undefined {
  const { services } = selection.egress;
  const registered = new Set(services.map((service) => service.hostname));
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
