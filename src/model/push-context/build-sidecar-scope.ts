/** Builds what a sidecar sees from its Sidecar object, or from none (spec/discovery.md §8.8). */
import { type Config, type ConfigKey, configKeyOf, configKeyText } from '../config/config.ts';
import { type HostNames, isWildcard } from '../fields/hostname.ts';
import type { EgressListener, OutboundTrafficPolicy, Sidecar } from '../kinds/sidecar.ts';
import type { Service } from '../services/service.ts';
import { chainBehind, isAlias } from '../services/service-alias.ts';
import { type ServiceIndex, takesPrecedence } from '../services/service-index.ts';
import { byServiceAge } from '../services/service-registry.ts';
import type { DestinationRuleIndex } from './destination-rule-index.ts';
import { HostImports } from './host-imports.ts';
import { destinationHosts } from './resolve-virtual-service.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from './resolved-rules.ts';
import type { EgressListenerScope, SidecarScope } from './sidecar-scope.ts';
import type { VirtualServiceIndex } from './virtual-service-index.ts';

/** What a scope is made from. */
export interface ScopeSources {
  readonly services: ServiceIndex;
  readonly virtualServices: VirtualServiceIndex;
  readonly destinationRules: DestinationRuleIndex;
  readonly meshPolicy: OutboundTrafficPolicy;
  readonly hostNames: HostNames;
}

/** Everything that is exported to the namespace, through one listener. */
const importEverything: EgressListener = { captureMode: 'DEFAULT', hosts: ['*/*'] };

function importsEverything({ hosts, port }: EgressListener): boolean {
  return port === undefined && hosts.includes('*/*');
}

/**
 * @param namespace of the proxies; also for a Sidecar of the root namespace
 * @param sidecar the object that holds for them; absent: everything that is exported to the namespace
 */
export function buildSidecarScope(sources: ScopeSources, namespace: string, sidecar?: Config<Sidecar>): SidecarScope {
  const egress = sidecar?.spec.egress?.length ? sidecar.spec.egress : [importEverything];
  if (egress.length === 1 && importsEverything(egress[0]!) && sources.services.isShared) {
    // Nothing is left that a virtual service could lead to besides.
    const { services } = sources.services;
    const virtualServices = sources.virtualServices.for('mesh', namespace);
    const { captureMode, bind } = egress[0]!;
    const listener = { captureMode, ...(bind !== undefined && { bind }), services, virtualServices };
    return new BuiltScope(sources, namespace, sidecar, [listener], services);
  }
  const seen = new SeenServices(namespace);
  const egressListeners = egress.map((listener) => listenerScope(sources, namespace, listener, seen));
  for (const { virtualServices } of egressListeners) {
    for (const { config } of virtualServices) seen.addDestinations(destinationHosts(config.spec), sources.services);
  }
  return new BuiltScope(sources, namespace, sidecar, egressListeners, seen.services());
}

function listenerScope(
  sources: ScopeSources,
  namespace: string,
  listener: EgressListener,
  seen: SeenServices,
): EgressListenerScope {
  const imports = new HostImports(listener.hosts, namespace);
  const everything = listener.hosts.includes('*/*');
  const visible = sources.services.visibleTo(namespace);
  const imported = everything
    ? visible
    : visible.filter((service) => imports.includes(service.namespace, service.hostname));
  const meant = withTargets(onePerHost(imported, namespace), everything ? undefined : sources.services, namespace);
  const services = withPort(meant, listener);
  for (const { original, service } of services) seen.add(original, service);
  const all = sources.virtualServices.for('mesh', namespace);
  const virtualServices = everything
    ? all
    : all.filter(({ config }) => {
        return config.spec.hosts.some((host) => imports.touches(config.namespace, host));
      });
  const { port, bind, captureMode } = listener;
  return {
    captureMode,
    ...(port && { port }),
    ...(bind !== undefined && { bind }),
    services: services.map(({ service }) => service),
    virtualServices,
  };
}

/** A host that several namespaces define means one of them (§8.8). */
function onePerHost(services: readonly Service[], namespace: string): readonly Service[] {
  const chosen = new Map<string, Service>();
  for (const service of services) {
    const before = chosen.get(service.hostname);
    if (before === undefined || takesPrecedence(service, before, namespace)) chosen.set(service.hostname, service);
  }
  return services.filter((service) => chosen.get(service.hostname)!.namespace === service.namespace);
}

/**
 * With what the aliases among them stand for: an imported name is good for nothing without it.
 *
 * @param index absent: everything is there already
 */
function withTargets(services: readonly Service[], index: ServiceIndex | undefined, namespace: string) {
  const aliases = index === undefined ? [] : services.filter(isAlias);
  if (index === undefined || aliases.length === 0) return services;
  const all = new Set(services);
  const hosts = new Set(services.map(({ hostname }) => hostname));
  const find = (host: string): Service | undefined => index.meaningOf(host, namespace);
  for (const alias of aliases) {
    for (const { hostname, namespace: owner } of chainBehind(alias, find)) {
      if (hosts.has(hostname)) continue;
      hosts.add(hostname);
      for (const service of index.of(hostname, owner)) all.add(service);
    }
  }
  return [...all].sort(byServiceAge);
}

interface SeenService {
  readonly original: Service;
  /** As the listener shows it. */
  readonly service: Service;
}

/** A listener for one port shows services that have it, with it alone; an HTTP proxy's port is nobody's. */
function withPort(services: readonly Service[], { port }: EgressListener): SeenService[] {
  if (port === undefined || port.number === 0 || port.protocol === 'HTTP_PROXY') {
    return services.map((service) => ({ original: service, service }));
  }
  return services.flatMap((original) => {
    // An alias has the ports of what it stands for.
    if (isAlias(original)) return [{ original, service: original }];
    const ports = original.ports.filter(({ number }) => number === port.number);
    if (ports.length === 0) return [];
    return [{ original, service: withPorts(original, ports) }];
  });
}

const trimmed = new WeakMap<Service, Map<string, Service>>();

/** A service with some of its ports: the same object wherever those ports are shown. */
function withPorts(original: Service, ports: Service['ports']): Service {
  if (ports.length === original.ports.length) return original;
  const known = trimmed.get(original) ?? new Map<string, Service>();
  trimmed.set(original, known);
  const id = ports.map(({ number }) => number).join();
  const service = known.get(id) ?? { ...original, ports };
  known.set(id, service);
  return service;
}

/** The union of what listeners show: the first listener's choice of a host's namespace holds, ports add up. */
class SeenServices {
  private readonly namespace: string;
  private readonly namespaceOfHost = new Map<string, string>();
  private readonly ports = new Map<Service, Set<number>>();

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  add(original: Service, shown: Service): void {
    const holding = this.namespaceOfHost.get(original.hostname);
    if (holding !== undefined && holding !== original.namespace) return;
    this.namespaceOfHost.set(original.hostname, original.namespace);
    const ports = this.ports.get(original) ?? new Set();
    this.ports.set(original, ports);
    for (const { number } of shown.ports) ports.add(number);
  }

  /** What imported virtual services lead to is seen even if it is not imported itself. */
  addDestinations(hosts: Iterable<string>, index: ServiceIndex): void {
    for (const host of hosts) {
      if (this.namespaceOfHost.has(host)) continue;
      const find = (name: string): Service | undefined => index.meaningOf(name, this.namespace);
      const service = find(host);
      if (service === undefined) continue;
      for (const { hostname, namespace } of chainBehind(service, find)) {
        for (const one of index.of(hostname, namespace)) this.add(one, one);
      }
    }
  }

  services(): readonly Service[] {
    const services = [...this.ports].map(([original, numbers]) => {
      return withPorts(
        original,
        original.ports.filter(({ number }) => numbers.has(number)),
      );
    });
    return services.sort(byServiceAge);
  }
}

class BuiltScope implements SidecarScope {
  readonly namespace: string;
  readonly sidecar?: Config<Sidecar>;
  readonly egressListeners: readonly EgressListenerScope[];
  readonly ingressListeners?: NonNullable<SidecarScope['ingressListeners']>;
  readonly inboundConnectionPool?: NonNullable<SidecarScope['inboundConnectionPool']>;
  readonly outboundTrafficPolicy: OutboundTrafficPolicy;
  readonly services: readonly Service[];
  private readonly destinationRules: DestinationRuleIndex;
  private byHostname: ReadonlyMap<string, Service> | undefined;

  constructor(
    sources: ScopeSources,
    namespace: string,
    sidecar: Config<Sidecar> | undefined,
    egressListeners: readonly EgressListenerScope[],
    services: readonly Service[],
  ) {
    this.namespace = namespace;
    this.egressListeners = egressListeners;
    this.services = services;
    this.destinationRules = sources.destinationRules;
    this.outboundTrafficPolicy = qualifiedPolicy(
      sidecar?.spec.outboundTrafficPolicy ?? sources.meshPolicy,
      sidecar?.namespace ?? namespace,
      sources.hostNames,
    );
    if (sidecar === undefined) return;
    this.sidecar = sidecar;
    if (sidecar.spec.ingress?.length) this.ingressListeners = sidecar.spec.ingress;
    if (sidecar.spec.inboundConnectionPool) this.inboundConnectionPool = sidecar.spec.inboundConnectionPool;
  }

  serviceByHostname(hostname: string): Service | undefined {
    // Backwards, so that of several services of a host the oldest stays.
    this.byHostname ??= new Map(this.services.toReversed().map((service) => [service.hostname, service]));
    return this.byHostname.get(hostname);
  }

  destinationRuleFor(service: Service, labels?: Readonly<Record<string, string>>): MergedDestinationRule | undefined {
    return this.destinationRules.for(this.namespace, service, labels);
  }

  dependsOn(key: ConfigKey): boolean {
    switch (key.kind) {
      case 'ServiceEntry':
        // One that is not in the scope itself may hide, or have hidden, another namespace's service of its host.
        return originsOf(this.services).has(`${key.namespace}/${key.name}`) || this.reaches(key.name);
      case 'Endpoints':
      case 'DNSName':
        return originsOf(this.services).has(`${key.namespace}/${key.name}`);
      case 'VirtualService':
        return this.egressListeners.some(({ virtualServices }) => leadsTo(virtualServices, key));
      case 'DestinationRule':
        return this.dependsOnRule(key);
      case 'Sidecar':
        return this.sidecar !== undefined && isSame(configKeyOf(this.sidecar), key);
      default:
        return originsOf(this.services).has(configKeyText(key));
    }
  }

  private reaches(hostname: string): boolean {
    return this.serviceByHostname(hostname) !== undefined;
  }

  private dependsOnRule(key: ConfigKey): boolean {
    if (this.destinationRules.isSelective(key)) return key.namespace === this.namespace;
    const host = this.destinationRules.hostOf(key);
    if (host === undefined) return false;
    const depends = (service: Service): boolean =>
      this.destinationRuleFor(service)?.origins.some((origin) => isSame(origin, key)) ?? false;
    if (isWildcard(host)) return this.services.some((service) => depends(service));
    const service = this.serviceByHostname(host);
    return service !== undefined && depends(service);
  }
}

/** Of a list of services, which many scopes share: their names, and the objects that they were made from. */
const origins = new WeakMap<readonly Service[], ReadonlySet<string>>();

function originsOf(services: readonly Service[]): ReadonlySet<string> {
  let known = origins.get(services);
  if (known === undefined) {
    const texts = new Set<string>();
    for (const { hostname, namespace, origin } of services) {
      texts.add(`${namespace}/${hostname}`);
      // Objects of the kind that names services are asked for without it.
      texts.add(origin.kind === 'ServiceEntry' ? `${origin.namespace}/${origin.name}` : configKeyText(origin));
    }
    known = texts;
    origins.set(services, known);
  }
  return known;
}

function leadsTo(virtualServices: readonly ResolvedVirtualService[], key: ConfigKey): boolean {
  return virtualServices.some((service) => service.origins.some((origin) => isSame(origin, key)));
}

function isSame(a: ConfigKey, b: ConfigKey): boolean {
  return a.name === b.name && a.namespace === b.namespace && a.kind === b.kind;
}

function qualifiedPolicy(
  policy: OutboundTrafficPolicy,
  namespace: string,
  hostNames: HostNames,
): OutboundTrafficPolicy {
  const { egressProxy } = policy;
  if (egressProxy === undefined) return policy;
  return { ...policy, egressProxy: { ...egressProxy, host: hostNames.qualified(egressProxy.host, namespace) } };
}
