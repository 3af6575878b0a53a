/** Builds a sidecar's virtual host for a service or VirtualService. Clients with equal inputs share it. */
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
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
import { resolveAlias } from '../../traffic/alias.ts';
import type { ProxyReach } from '../../traffic/reach.ts';
import { virtualHostName } from '../../traffic/resource-names.ts';
import { countSharedLabels, type DomainOptions } from '../translate/domains.ts';
import { defaultRoute, type RouteContext, virtualServiceRoutes } from '../translate/route.ts';
import { destinationsOf, namespaceTextFor, shapeTextFor } from '../translate/virtual-service-inputs.ts';
import { combineDependencies } from '../translate/with-dependencies.ts';
import { type Domains, domainsOfGroup, domainsWithText, type ServiceGroup } from './service-groups.ts';
import { routesPart, VirtualHostPart } from './virtual-host-part.ts';

export interface RouteSelection {
  readonly egress: EgressListenerScope;
  /** Port with which matches are compared; 0 if the listener serves all ports. */
  readonly listenerPort: number;
  /** Port of the services; absent for all ports. */
  readonly port?: number;
  /** If set, only the service with this host is selected, regardless of the requested name. */
  readonly host?: string;
}

export interface PlanContext {
  readonly selection: RouteSelection;
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly scope: SidecarScope;
  readonly cache: Memory;
  readonly reach: ProxyReach;
}

export interface VirtualHostSpec {
  readonly hostname: string;
  /** Absent for a host that only a VirtualService defines. */
  readonly group?: ServiceGroup;
  readonly port: number;
  readonly listenerPort: number;
  readonly aliasServices: readonly Service[];
  readonly aliasService?: Service;
  /** `undefined` for the default route. */
  readonly virtualService: ResolvedVirtualService | undefined;
  readonly servicePort?: Port;
}

/** A virtual host with all requested domains. The same object for all clients with equal results. */
export interface CachedVirtualHost {
  readonly name: string;
  readonly domains: Domains;
  readonly virtualService: ResolvedVirtualService | undefined;
  readonly routes: CachedRoutes;
  readonly hostPart: VirtualHostPart;
}

export interface CachedRoutes {
  readonly routePart: Encodable;
  readonly dependsOn: readonly ConfigKey[];
  /** Destination hosts, on whose services and DestinationRules the routes depend. */
  readonly destinationHosts: readonly string[];
  readonly virtualHosts: Map<string, CachedVirtualHost>;
  /** Client properties on which the routes depend, except the resolution of hosts. */
  readonly clientText: string;
  /** Resolution of each destination host; `undefined` if one is an alias. */
  readonly resolutions: readonly HostResolution[] | undefined;
}

interface HostResolution {
  readonly host: string;
  readonly service: Service | undefined;
  readonly rule: MergedDestinationRule | undefined;
}

/** Maximum number of virtual hosts with the same routes but different domains. Few clients need different domains. */
const maxHostsOfRoutes = 64;

export function buildVirtualHost(spec: VirtualHostSpec, context: PlanContext): CachedVirtualHost {
  const routes = buildRoutes(spec, context);
  const domains = domainsForSpec(spec, context);
  const name = virtualHostName(spec.hostname, spec.port);
  let cachedHost = routes.virtualHosts.get(domains.text);
  if (cachedHost === undefined) {
    const hostPart = new VirtualHostPart(name, domains.domainNames, routes.routePart);
    cachedHost = { name, domains, virtualService: spec.virtualService, routes, hostPart };
    setBounded(routes.virtualHosts, domains.text, cachedHost, maxHostsOfRoutes);
  }
  return cachedHost;
}

/**
 * Whether a virtual host that was built for another client is valid for this one, given the same mesh and
 * configuration.
 */
export function isReusableFor(cachedHost: CachedVirtualHost, hostname: string, context: PlanContext): boolean {
  const { reach } = context;
  return (
    hasSameNamesFor(cachedHost, hostname, context) &&
    cachedHost.routes.resolutions!.every(
      ({ host, service, rule }) =>
        reach.serviceByHostname(host) === service &&
        (service === undefined || reach.destinationRuleFor(service) === rule),
    )
  );
}

/** Like {@link isReusableFor}, if all destination hosts resolve equally for both clients. */
export function hasSameNamesFor(
  { virtualService, domains, routes }: CachedVirtualHost,
  hostname: string,
  { shape }: PlanContext,
): boolean {
  return (
    routes.resolutions !== undefined &&
    domains.sharedLabelCount !== undefined &&
    routes.clientText === clientTextOf(virtualService, shape) &&
    domains.sharedLabelCount === countSharedLabels(hostname, shape.dnsDomain)
  );
}

function clientTextOf(virtualService: ResolvedVirtualService | undefined, shape: ProxyShape): string {
  return `${shapeTextFor(virtualService, shape)} ${namespaceTextFor(virtualService, shape.configNamespace)}`;
}

const narrowedParts = memoizeByObject((_: VirtualHostPart) => new Map<string, VirtualHostPart>());

/** Returns a virtual host without the domains for which other hosts have priority. */
export function withDomains(
  { name, routes, hostPart }: CachedVirtualHost,
  domains: readonly string[],
): VirtualHostPart {
  const partsByDomains = narrowedParts(hostPart);
  const key = domains.join();
  let narrowedPart = partsByDomains.get(key);
  if (narrowedPart === undefined) {
    narrowedPart = new VirtualHostPart(name, domains, routes.routePart);
    setBounded(partsByDomains, key, narrowedPart, maxHostsOfRoutes);
  }
  return narrowedPart;
}

const everyDomain: Domains = { domainNames: ['*'], text: '*' };

function domainsForSpec(spec: VirtualHostSpec, { selection, shape, push }: PlanContext): Domains {
  const { group, aliasService, hostname, port, aliasServices } = spec;
  if (selection.host !== undefined && aliasService === undefined) return everyDomain;
  const options: DomainOptions = {
    proxyDomain: shape.dnsDomain,
    absoluteNames: push.features.absoluteNames,
    ...(selection.port === undefined && { port }),
  };
  const aliases = aliasServices.map((aliasOfGroup) => aliasOfGroup.hostname);
  if (group !== undefined && aliasService === undefined) return domainsOfGroup(group, aliases, options);
  return domainsWithText({ hostname, addresses: [], aliases }, options);
}

/** Cached by inputs instead of client, so that namespaces with the same rules share routes. */
function buildRoutes(spec: VirtualHostSpec, { shape, push, cache, reach }: PlanContext): CachedRoutes {
  const { hostname, port, listenerPort, group, aliasServices, aliasService, virtualService, servicePort } = spec;
  const services = group?.services ?? [];
  const inputs: unknown[] = [...services, ...aliasServices, aliasService, virtualService, push.mesh];
  const hosts = virtualService === undefined ? [hostname] : destinationsOf(virtualService);
  const destinationHosts = new Set(hosts);
  const hostResolutions: HostResolution[] = [];
  let destinationRulesText = '';
  for (const host of hosts) {
    const { chain } = resolveAlias(host, reach);
    const [firstService] = chain;
    if (chain.length <= 1) {
      hostResolutions.push({
        host,
        service: firstService,
        rule: firstService && reach.destinationRuleFor(firstService),
      });
    }
    for (const chainedService of chain) {
      const rule = reach.destinationRuleFor(chainedService);
      inputs.push(chainedService, rule);
      destinationRulesText += ` ${serviceText(chainedService)}=${ruleText(rule)}`;
      destinationHosts.add(chainedService.hostname);
    }
    inputs.push(undefined);
    destinationRulesText += ';';
  }
  const hostText = `${group?.text ?? hostname} ${aliasServices.map((aliasOfGroup) => aliasOfGroup.hostname).join()} ${aliasService?.hostname ?? ''}`;
  const client = clientTextOf(virtualService, shape);
  const resolutions = hostResolutions.length === hosts.length ? hostResolutions : undefined;
  const key = `${hostText} ${port} ${listenerPort} ${ruleText(virtualService)} ${client}${destinationRulesText}`;
  return cache.getOrBuild('RDS', key, inputs, (): CachedRoutes => {
    const namedAliases = aliasService === undefined ? aliasServices : [aliasService];
    const context: RouteContext = {
      shape,
      gateway: 'mesh',
      listenerPort,
      reach,
      meshRetry: push.mesh.defaultHttpRetryPolicy,
    };
    const routes =
      virtualService === undefined
        ? combineDependencies([defaultRoute(services[0]!, servicePort!, hostname, context)])
        : virtualServiceRoutes(virtualService, [context]);
    const dependsOn = [...[...services.slice(0, 1), ...namedAliases].map(serviceKey), ...routes.dependsOn];
    const origins = [
      ...[...services, ...namedAliases].flatMap(serviceOrigin),
      ...virtualServiceOrigins(virtualService),
    ];
    return {
      routePart: routesPart(routes.value, origins),
      dependsOn,
      destinationHosts: [...destinationHosts],
      virtualHosts: new Map(),
      clientText: client,
      resolutions,
    };
  });
}
