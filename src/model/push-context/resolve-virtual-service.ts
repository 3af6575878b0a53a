/** Qualifies hosts, and converts gateways to `namespace/name`. */
import type { Config } from '../config/config.ts';
import { type HostNames, isShortName } from '../fields/hostname.ts';
import type {
  Destination,
  HttpMatchRequest,
  HttpMirrorPolicy,
  HttpRoute,
  RouteDestination,
  VirtualService,
} from '../kinds/virtual-service/virtual-service.ts';

export function resolveVirtualService(config: Config<VirtualService>, hostNames: HostNames): Config<VirtualService> {
  const { spec, namespace } = config;
  const names = new NameResolver(namespace, hostNames);
  return {
    ...config,
    spec: {
      ...spec,
      hosts: hasFullHosts(config) ? spec.hosts : spec.hosts.map((host) => hostNames.qualify(host, namespace)),
      gateways: spec.gateways?.length ? names.gateways(spec.gateways) : ['mesh'],
      ...(spec.http && { http: spec.http.map((route) => names.http(route)) }),
      ...(spec.tls && { tls: spec.tls.map((route) => names.layer4(route)) }),
      ...(spec.tcp && { tcp: spec.tcp.map((route) => names.layer4(route)) }),
    },
  };
}

/** Objects generated from the Gateway API contain full names, so a name without dots is not resolved. */
function hasFullHosts({ partOrigins, generatedFrom }: Config): boolean {
  return partOrigins !== undefined && generatedFrom !== 'Ingress';
}

class NameResolver {
  private readonly namespace: string;
  private readonly hostNames: HostNames;

  constructor(namespace: string, hostNames: HostNames) {
    this.namespace = namespace;
    this.hostNames = hostNames;
  }

  gateways(gateways: readonly string[]): string[] {
    return gateways.map((gateway) => {
      return gateway === 'mesh' || gateway.includes('/') ? gateway : `${this.namespace}/${gateway}`;
    });
  }

  http(route: HttpRoute): HttpRoute {
    const { match, route: destinations, mirror, mirrors } = route;
    return {
      ...route,
      ...(match && { match: match.map((request) => this.match(request)) }),
      ...(destinations && {
        route: destinations.map((resolveDestination) => this.withResolvedDestination(resolveDestination)),
      }),
      ...(mirror && { mirror: this.destination(mirror) }),
      ...(mirrors && { mirrors: mirrors.map((policy) => this.withResolvedDestination<HttpMirrorPolicy>(policy)) }),
    };
  }

  layer4<R extends { match?: readonly { gateways?: readonly string[] }[]; route?: readonly RouteDestination[] }>(
    route: R,
  ): R {
    return {
      ...route,
      ...(route.match && { match: route.match.map((attributes) => this.match(attributes)) }),
      ...(route.route && {
        route: route.route.map((weightedDestination) => this.withResolvedDestination(weightedDestination)),
      }),
    };
  }

  private match<M extends Pick<HttpMatchRequest, 'gateways'>>(match: M): M {
    return match.gateways?.length ? { ...match, gateways: this.gateways(match.gateways) } : match;
  }

  private withResolvedDestination<W extends { readonly destination: Destination }>(target: W): W {
    return { ...target, destination: this.destination(target.destination) };
  }

  private destination(destination: Destination): Destination {
    return { ...destination, host: this.hostNames.qualify(destination.host, this.namespace) };
  }
}

export function shortNamesText(config: Config<VirtualService>, hostNames: HostNames): string {
  const { spec, namespace } = config;
  const shortHosts = [...(hasFullHosts(config) ? [] : spec.hosts), ...destinationHosts(spec)].filter(isShortName);
  return shortHosts.map((host) => hostNames.qualify(host, namespace)).join();
}

export function destinationHosts(spec: VirtualService): ReadonlySet<string> {
  const hosts = new Set<string>();
  for (const route of spec.http ?? []) {
    for (const { destination } of route.route ?? []) hosts.add(destination.host);
    for (const { destination } of route.mirrors ?? []) hosts.add(destination.host);
    if (route.mirror) hosts.add(route.mirror.host);
  }
  for (const route of [...(spec.tls ?? []), ...(spec.tcp ?? [])]) {
    for (const { destination } of route.route ?? []) hosts.add(destination.host);
  }
  return hosts;
}
