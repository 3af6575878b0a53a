import { isDeepStrictEqual } from 'node:util';
import { memoizeByObject } from '../collections/memoize-by-object.ts';
import { sameItems } from '../collections/same-items.ts';
import { type Config, type ConfigKey, configKeyOf, configKeyText } from '../config/config.ts';
import { type HostNames, isWildcard, mostSpecificKey } from '../fields/hostname.ts';
import type { VirtualService } from '../kinds/virtual-service/virtual-service.ts';
import type { EgressListener, OutboundTrafficPolicy, Sidecar } from '../kinds/workloads/sidecar.ts';
import type { Service } from '../services/service.ts';
import { aliasChain, isAlias } from '../services/service-alias.ts';
import { type ServiceIndex, takesPrecedence } from '../services/service-index.ts';
import { compareServiceAge } from '../services/service-registry.ts';
import { isExportedTo } from '../services/visibility.ts';
import { HostImports } from './host-imports.ts';
import { destinationHosts } from './resolve-virtual-service.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';
import type { EgressListenerScope, SidecarScope } from './sidecar-scope.ts';
import type { VirtualServiceIndex } from './virtual-service-index.ts';

/** Inputs of a scope, except destination rules, which the context resolves. */
export interface ScopeSources {
  readonly services: ServiceIndex;
  readonly virtualServices: VirtualServiceIndex;
  readonly meshPolicy: OutboundTrafficPolicy;
  readonly hostNames: HostNames;
}

const importEverything: EgressListener = { captureMode: 'DEFAULT', hosts: ['*/*'] };

function importsEverything({ hosts, port }: EgressListener, namespace: string): boolean {
  return port === undefined && new HostImports(hosts, namespace).isEverything;
}

/**
 * @param namespace of the proxies, even if the Sidecar is in the root namespace
 * @param sidecar if absent, imports everything exported to the namespace
 * @param previous unchanged lists of this scope are reused
 * @param sameServices `previous` has the same services and mesh settings, so only virtual services are compared
 */
export function buildSidecarScope(
  sources: ScopeSources,
  namespace: string,
  sidecar?: Config<Sidecar>,
  previous?: SidecarScope,
  sameServices = false,
): SidecarScope {
  const egress = sidecar?.spec.egress?.length ? sidecar.spec.egress : [importEverything];
  if (sameServices && previous !== undefined && previous.sidecar === sidecar) {
    const isUnchanged = egress.every((listener, index) => {
      return sameItems(previous.egressListeners[index]!.virtualServices, importedRules(sources, namespace, listener));
    });
    if (isUnchanged) return previous;
  }
  const visibleServices = new VisibleServices(namespace);
  const listeners = egress.map((listener, index) =>
    listenerScope(sources, namespace, listener, previous?.egressListeners[index]),
  );
  const egressListeners = listeners.map(({ listener }) => listener);
  const outboundTrafficPolicy = qualifyOutboundPolicy(
    sidecar?.spec.outboundTrafficPolicy ?? sources.meshPolicy,
    sidecar?.namespace ?? namespace,
    sources.hostNames,
  );
  const scopeParts = { namespace, sidecar, outboundTrafficPolicy, egressListeners };
  // If everything is imported, virtual services cannot add destinations.
  if (egress.length === 1 && importsEverything(egress[0]!, namespace)) {
    return reuseUnchangedScope(previous, new BuiltScope(scopeParts, egressListeners[0]!.services));
  }
  for (const { shown } of listeners)
    for (const { originalService, service } of shown()) visibleServices.add(originalService, service);
  for (const { virtualServices } of egressListeners) {
    for (const { config } of virtualServices) visibleServices.addDestinations(destinationsOf(config), sources.services);
  }
  return reuseUnchangedScope(
    previous,
    new BuiltScope(scopeParts, reuseUnchangedItems(previous?.services, visibleServices.services())),
  );
}

const destinationsOf = memoizeByObject(({ spec }: Config<VirtualService>) => destinationHosts(spec));

function listenerScope(
  sources: ScopeSources,
  namespace: string,
  listener: EgressListener,
  previous: EgressListenerScope | undefined,
) {
  const imports = new HostImports(listener.hosts, namespace);
  const hostServices = imports.isEverything
    ? sources.services.servicesResolvedFor(namespace)
    : withTargets(
        pickOnePerHost(importedServices(sources.services, imports, namespace), namespace),
        sources,
        namespace,
      );
  const importsAllPorts = !exposesOnePort(listener);
  const servicesWithPort = (): readonly VisibleService[] => withPort(hostServices, listener);
  const virtualServices = importedRules(sources, namespace, listener);
  const { port, bind, captureMode } = listener;
  const services = importsAllPorts ? hostServices : servicesWithPort().map(({ service }) => service);
  const scope: EgressListenerScope = {
    captureMode,
    ...(port && { port }),
    ...(bind !== undefined && { bind }),
    services: reuseUnchangedItems(previous?.services, services),
    virtualServices: reuseUnchangedItems(previous?.virtualServices, virtualServices),
  };
  return { listener: scope, shown: servicesWithPort };
}

function importedRules(
  { virtualServices }: ScopeSources,
  namespace: string,
  { hosts }: EgressListener,
): readonly ResolvedVirtualService[] {
  if (hosts.includes('*/*')) return virtualServices.servicesFor('mesh', namespace);
  return virtualServices.importedServices('mesh', namespace, new HostImports(hosts, namespace));
}

/** Keeps the previous list, so that results cached for it stay valid. */
function reuseUnchangedItems<T>(previous: readonly T[] | undefined, current: readonly T[]): readonly T[] {
  return previous !== undefined && sameItems(previous, current) ? previous : current;
}

function reuseUnchangedScope(previous: SidecarScope | undefined, current: BuiltScope): SidecarScope {
  if (previous === undefined || previous.sidecar !== current.sidecar || previous.services !== current.services)
    return current;
  const { egressListeners, outboundTrafficPolicy } = previous;
  const isUnchanged = current.egressListeners.every((listener, index) => {
    const previousListener = egressListeners[index];
    return (
      listener.services === previousListener?.services && listener.virtualServices === previousListener.virtualServices
    );
  });
  if (!isUnchanged || egressListeners.length !== current.egressListeners.length) return current;
  return isDeepStrictEqual(outboundTrafficPolicy, current.outboundTrafficPolicy) ? previous : current;
}

function importedServices(index: ServiceIndex, imports: HostImports, namespace: string): readonly Service[] {
  const foundServices = new Set<Service>();
  const add = (candidates: readonly Service[], hosts: ReadonlySet<string>): void => {
    const importsAllHosts = hosts.has('*');
    for (const service of candidates) {
      if (!isExportedTo(service.exportTo, service.namespace, namespace)) continue;
      if (imports.excludes(service.namespace, service.hostname)) continue;
      if (importsAllHosts || mostSpecificKey(service.hostname, hosts) !== undefined) foundServices.add(service);
    }
  };
  for (const [sourceNamespace, hosts] of imports.hosts) {
    const isAnyNamespace = sourceNamespace === '*';
    // Looks up hosts without a wildcard individually, because a Sidecar names few of thousands.
    if ([...hosts].some(isWildcard))
      add(isAnyNamespace ? index.visibleTo(namespace) : index.servicesDefinedIn(sourceNamespace), hosts);
    else
      for (const host of hosts)
        add(isAnyNamespace ? index.servicesOfHost(host) : index.servicesNamed(host, sourceNamespace), hosts);
  }
  return [...foundServices].sort(compareServiceAge);
}

function pickOnePerHost(services: readonly Service[], namespace: string): readonly Service[] {
  const serviceByHost = new Map<string, Service>();
  for (const service of services) {
    const chosenService = serviceByHost.get(service.hostname);
    if (chosenService === undefined || takesPrecedence(service, chosenService, namespace))
      serviceByHost.set(service.hostname, service);
  }
  return services.filter((service) => serviceByHost.get(service.hostname)!.namespace === service.namespace);
}

/** An alias cannot be resolved without its target. */
function withTargets(services: readonly Service[], { services: index }: ScopeSources, namespace: string) {
  const aliases = services.filter(isAlias);
  if (aliases.length === 0) return services;
  const servicesWithTargets = new Set(services);
  const hosts = new Set(services.map(({ hostname }) => hostname));
  const find = (host: string): Service | undefined => index.resolveHost(host, namespace);
  for (const alias of aliases) {
    for (const { hostname, namespace: owner } of aliasChain(alias, find)) {
      if (hosts.has(hostname)) continue;
      hosts.add(hostname);
      for (const service of index.servicesNamed(hostname, owner)) servicesWithTargets.add(service);
    }
  }
  return [...servicesWithTargets].sort(compareServiceAge);
}

interface VisibleService {
  readonly originalService: Service;
  readonly service: Service;
}

/** The port of an HTTP_PROXY listener belongs to no service. */
function exposesOnePort({ port }: EgressListener): boolean {
  return port !== undefined && port.number !== 0 && port.protocol !== 'HTTP_PROXY';
}

function withPort(services: readonly Service[], listener: EgressListener): VisibleService[] {
  if (!exposesOnePort(listener)) return services.map((service) => ({ originalService: service, service }));
  const port = listener.port!;
  return services.flatMap((originalService) => {
    // An alias has the ports of its target.
    if (isAlias(originalService)) return [{ originalService: originalService, service: originalService }];
    const ports = originalService.ports.filter(({ number }) => number === port.number);
    if (ports.length === 0) return [];
    return [{ originalService: originalService, service: withPorts(originalService, ports) }];
  });
}

const trimmedByService = new WeakMap<Service, Map<string, Service>>();

/** Returns the same object for the same ports. */
function withPorts(originalService: Service, ports: Service['ports']): Service {
  if (ports.length === originalService.ports.length) return originalService;
  const trimmedServices = trimmedByService.get(originalService) ?? new Map<string, Service>();
  trimmedByService.set(originalService, trimmedServices);
  const id = ports.map(({ number }) => number).join();
  const service = trimmedServices.get(id) ?? { ...originalService, ports };
  trimmedServices.set(id, service);
  return service;
}

/** The first listener with a host determines the namespace of the host. Ports of all listeners are merged. */
class VisibleServices {
  private readonly namespace: string;
  private readonly namespaceOfHost = new Map<string, string>();
  private readonly ports = new Map<Service, Set<number>>();

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  add(originalService: Service, visibleService: Service): void {
    const definingNamespace = this.namespaceOfHost.get(originalService.hostname);
    if (definingNamespace !== undefined && definingNamespace !== originalService.namespace) return;
    this.namespaceOfHost.set(originalService.hostname, originalService.namespace);
    const ports = this.ports.get(originalService) ?? new Set();
    this.ports.set(originalService, ports);
    for (const { number } of visibleService.ports) ports.add(number);
  }

  /** Destinations of imported virtual services need not be imported themselves. */
  addDestinations(hosts: Iterable<string>, index: ServiceIndex): void {
    for (const host of hosts) {
      if (this.namespaceOfHost.has(host)) continue;
      const find = (name: string): Service | undefined => index.resolveHost(name, this.namespace);
      const service = find(host);
      if (service === undefined) continue;
      for (const { hostname, namespace } of aliasChain(service, find)) {
        for (const candidate of index.servicesNamed(hostname, namespace)) this.add(candidate, candidate);
      }
    }
  }

  services(): readonly Service[] {
    const services = [...this.ports].map(([originalService, numbers]) => {
      return withPorts(
        originalService,
        originalService.ports.filter(({ number }) => numbers.has(number)),
      );
    });
    return services.sort(compareServiceAge);
  }
}

interface ScopeParts {
  readonly namespace: string;
  readonly sidecar: Config<Sidecar> | undefined;
  readonly outboundTrafficPolicy: OutboundTrafficPolicy;
  readonly egressListeners: readonly EgressListenerScope[];
}

class BuiltScope implements SidecarScope {
  readonly namespace: string;
  readonly sidecar?: Config<Sidecar>;
  readonly egressListeners: readonly EgressListenerScope[];
  readonly ingressListeners?: NonNullable<SidecarScope['ingressListeners']>;
  readonly inboundConnectionPool?: NonNullable<SidecarScope['inboundConnectionPool']>;
  readonly outboundTrafficPolicy: OutboundTrafficPolicy;
  readonly services: readonly Service[];

  constructor(
    { namespace, sidecar, outboundTrafficPolicy, egressListeners }: ScopeParts,
    services: readonly Service[],
  ) {
    this.namespace = namespace;
    this.egressListeners = egressListeners;
    this.services = services;
    this.outboundTrafficPolicy = outboundTrafficPolicy;
    if (sidecar === undefined) return;
    this.sidecar = sidecar;
    if (sidecar.spec.ingress?.length) this.ingressListeners = sidecar.spec.ingress;
    if (sidecar.spec.inboundConnectionPool) this.inboundConnectionPool = sidecar.spec.inboundConnectionPool;
  }

  serviceByHostname(hostname: string): Service | undefined {
    return servicesByHostname(this.services).get(hostname);
  }

  dependsOn(key: ConfigKey): boolean {
    switch (key.kind) {
      case 'ServiceEntry':
        // A change of a service outside the scope may change the namespace to which its host resolves.
        return this.reaches(key.name) || originsOf(this.services).has(`${key.namespace}/${key.name}`);
      case 'Endpoints':
      case 'DNSName':
        // Endpoint keys contain the service's host name, and a scope has one namespace per host.
        return this.serviceByHostname(key.name)?.namespace === key.namespace;
      case 'Sidecar':
        return this.sidecar !== undefined && areKeysEqual(configKeyOf(this.sidecar), key);
      default:
        return originsOf(this.services).has(configKeyText(key));
    }
  }

  private reaches(hostname: string): boolean {
    return this.serviceByHostname(hostname) !== undefined;
  }
}

const servicesByHostname = memoizeByObject(
  (services: readonly Service[]): ReadonlyMap<string, Service> =>
    // The order is reversed, so that the oldest service of a host remains.
    new Map(services.toReversed().map((service) => [service.hostname, service])),
);

const originsOf = memoizeByObject((services: readonly Service[]): ReadonlySet<string> => {
  const texts = new Set<string>();
  for (const { hostname, namespace, origin } of services) {
    texts.add(`${namespace}/${hostname}`);
    texts.add(origin.kind === 'ServiceEntry' ? `${origin.namespace}/${origin.name}` : configKeyText(origin));
  }
  return texts;
});

function areKeysEqual(a: ConfigKey, b: ConfigKey): boolean {
  return a.name === b.name && a.namespace === b.namespace && a.kind === b.kind;
}

function qualifyOutboundPolicy(
  policy: OutboundTrafficPolicy,
  namespace: string,
  hostNames: HostNames,
): OutboundTrafficPolicy {
  const { egressProxy } = policy;
  if (egressProxy === undefined) return policy;
  return { ...policy, egressProxy: { ...egressProxy, host: hostNames.qualify(egressProxy.host, namespace) } };
}
