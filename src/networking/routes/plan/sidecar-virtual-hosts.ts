/** One virtual host of a sidecar: a service, or a virtual service over it (§8.5), made once for all who have it. */
import { onceFor } from '../../../model/collections/once-for.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { EgressListenerScope, SidecarScope } from '../../../model/push-context/sidecar-scope.ts';
import { type Port, type Service, serviceKey } from '../../../model/services/service.ts';
import type { Memory } from '../../inputs/generator-memory.ts';
import { ruleText, serviceText } from '../../inputs/input-text.ts';
import { serviceOrigin, virtualServiceOrigins } from '../../inputs/message-origin.ts';
import type { Encodable } from '../../messages/resource.ts';
import { namedBy } from '../../traffic/alias.ts';
import type { Reach } from '../../traffic/reach.ts';
import { virtualHostName } from '../../traffic/resource-names.ts';
import { dependingAll } from '../translate/depending.ts';
import { type DomainOptions, sharedLabels } from '../translate/domains.ts';
import { defaultRoute, type RouteContext, virtualServiceRoutes } from '../translate/route.ts';
import { destinationsOf, namespaceTextFor, shapeTextFor } from '../translate/virtual-service-inputs.ts';
import { type Domains, domainsOfGroup, type ServiceGroup, textedDomains } from './service-groups.ts';
import { routesPart, VirtualHostPart } from './virtual-host-part.ts';

export interface RouteSelection {
  readonly egress: EgressListenerScope;
  /** What matches on a port are compared with; 0: the listener serves all ports. */
  readonly listenerPort: number;
  /** Only services of this port; absent: of all. */
  readonly port?: number;
  /** Only this service: whatever name a client used, it meant this one. */
  readonly host?: string;
}

/** What all virtual hosts of a configuration have in common. */
export interface Surroundings {
  readonly selection: RouteSelection;
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly scope: SidecarScope;
  readonly memory: Memory;
  readonly reach: Reach;
}

/** What one virtual host is made for. */
export interface Wanted {
  readonly hostname: string;
  /** The services behind the host; absent for a name that only a virtual service knows. */
  readonly group?: ServiceGroup;
  readonly port: number;
  readonly listenerPort: number;
  /** Services that are another name for it. */
  readonly aliasServices: readonly Service[];
  /** Set where the name is one of these, with routes of its own. */
  readonly alias?: Service;
  /** One that has a route for the client; absent: the service's default route. */
  readonly over: ResolvedVirtualService | undefined;
  readonly servicePort?: Port;
}

/** A virtual host with all domains that it wants: the same object for all clients that get the same. */
export interface MadeVirtualHost {
  readonly name: string;
  readonly domains: Domains;
  readonly over: ResolvedVirtualService | undefined;
  readonly routes: MadeRoutes;
  readonly part: VirtualHostPart;
}

/** The routes of a virtual host: what it is called is told apart by its name and domains. */
export interface MadeRoutes {
  readonly part: Encodable;
  readonly dependsOn: readonly ConfigKey[];
  /** The hosts that the routes lead to: what those mean, and their destination rules, are in them. */
  readonly leadsTo: readonly string[];
  /** Virtual hosts by the text of their domains. */
  readonly hosts: Map<string, MadeVirtualHost>;
  /** What of the client they depend on besides what hosts mean to it. */
  readonly client: string;
  /** What each host that they lead to meant; absent where one is another name for a service. */
  readonly meant: readonly Meaning[] | undefined;
}

interface Meaning {
  readonly host: string;
  readonly service: Service | undefined;
  readonly rule: MergedDestinationRule | undefined;
}

/** Ways to say domains for the same routes; few clients differ. */
const maxHosts = 64;

export function makeVirtualHost(wanted: Wanted, around: Surroundings): MadeVirtualHost {
  const routes = makeRoutes(wanted, around);
  const domains = wantedDomains(wanted, around);
  const name = virtualHostName(wanted.hostname, wanted.port);
  let made = routes.hosts.get(domains.text);
  if (made === undefined) {
    const part = new VirtualHostPart(name, domains.all, routes.part);
    made = { name, domains, over: wanted.over, routes, part };
    setBounded(routes.hosts, domains.text, made, maxHosts);
  }
  return made;
}

/** Whether a client gets the very same virtual host that was made for another of the same mesh and configuration. */
export function isSameFor(made: MadeVirtualHost, hostname: string, around: Surroundings): boolean {
  const { reach } = around;
  return (
    isCalledTheSame(made, hostname, around) &&
    made.routes.meant!.every(
      ({ host, service, rule }) =>
        reach.serviceByHostname(host) === service &&
        (service === undefined || reach.destinationRuleFor(service) === rule),
    )
  );
}

/** As {@link isSameFor}, where all that its routes lead to means the same to both clients. */
export function isCalledTheSame(
  { over, domains, routes }: MadeVirtualHost,
  hostname: string,
  { shape }: Surroundings,
): boolean {
  return (
    routes.meant !== undefined &&
    domains.shared !== undefined &&
    routes.client === clientText(over, shape) &&
    domains.shared === sharedLabels(hostname, shape.dnsDomain)
  );
}

function clientText(over: ResolvedVirtualService | undefined, shape: ProxyShape): string {
  return `${shapeTextFor(over, shape)} ${namespaceTextFor(over, shape.configNamespace)}`;
}

const narrowed = onceFor((_: VirtualHostPart) => new Map<string, VirtualHostPart>());

/** A virtual host with some of its domains: others claimed the rest. The same for who claims the same again. */
export function withDomains({ name, routes, part }: MadeVirtualHost, domains: readonly string[]): VirtualHostPart {
  const ofPart = narrowed(part);
  const key = domains.join();
  let less = ofPart.get(key);
  if (less === undefined) {
    less = new VirtualHostPart(name, domains, routes.part);
    setBounded(ofPart, key, less, maxHosts);
  }
  return less;
}

const everyDomain: Domains = { all: ['*'], text: '*' };

function wantedDomains(wanted: Wanted, { selection, shape, push }: Surroundings): Domains {
  const { group, alias, hostname, port, aliasServices } = wanted;
  if (selection.host !== undefined && alias === undefined) return everyDomain;
  const options: DomainOptions = {
    proxyDomain: shape.dnsDomain,
    absoluteNames: push.features.absoluteNames,
    ...(selection.port === undefined && { port }),
  };
  const aliases = aliasServices.map((one) => one.hostname);
  if (group !== undefined && alias === undefined) return domainsOfGroup(group, aliases, options);
  return textedDomains({ hostname, addresses: [], aliases }, options);
}

/** Looked up by what they are made from, and not by who asks: namespaces that have the same rules share them. */
function makeRoutes(wanted: Wanted, { shape, push, memory, reach }: Surroundings): MadeRoutes {
  const { hostname, port, listenerPort, group, aliasServices, alias, over, servicePort } = wanted;
  const services = group?.services ?? [];
  const inputs: unknown[] = [...services, ...aliasServices, alias, over, push.mesh];
  const hosts = over === undefined ? [hostname] : destinationsOf(over);
  const leadsTo = new Set(hosts);
  const meanings: Meaning[] = [];
  let rules = '';
  for (const host of hosts) {
    const { chain } = namedBy(host, reach);
    const [first] = chain;
    if (chain.length <= 1) {
      meanings.push({ host, service: first, rule: first && reach.destinationRuleFor(first) });
    }
    // What the name stands for, step by step, and the rule for each.
    for (const one of chain) {
      const rule = reach.destinationRuleFor(one);
      inputs.push(one, rule);
      rules += ` ${serviceText(one)}=${ruleText(rule)}`;
      leadsTo.add(one.hostname);
    }
    inputs.push(undefined);
    rules += ';';
  }
  const named = `${group?.text ?? hostname} ${aliasServices.map((one) => one.hostname).join()} ${alias?.hostname ?? ''}`;
  const client = clientText(over, shape);
  const meant = meanings.length === hosts.length ? meanings : undefined;
  const key = `${named} ${port} ${listenerPort} ${ruleText(over)} ${client}${rules}`;
  return memory.recall('RDS', key, inputs, (): MadeRoutes => {
    const others = alias === undefined ? aliasServices : [alias];
    const context: RouteContext = {
      shape,
      gateway: 'mesh',
      listenerPort,
      reach,
      meshRetry: push.mesh.defaultHttpRetryPolicy,
    };
    const routes =
      over === undefined
        ? dependingAll([defaultRoute(services[0]!, servicePort!, hostname, context)])
        : virtualServiceRoutes(over, [context]);
    const dependsOn = [...[...services.slice(0, 1), ...others].map(serviceKey), ...routes.dependsOn];
    const origins = [...[...services, ...others].flatMap(serviceOrigin), ...virtualServiceOrigins(over)];
    return {
      part: routesPart(routes.value, origins),
      dependsOn,
      leadsTo: [...leadsTo],
      hosts: new Map(),
      client,
      meant,
    };
  });
}
