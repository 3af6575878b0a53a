import type { Steps } from '../../runtime/turns.ts';
import { type Config, configKeyOf, type Origin } from '../config/config.ts';
import type { Ingress, IngressBackend, IngressPath } from '../kinds/kubernetes/ingress.ts';
import type { KubernetesService } from '../kinds/kubernetes/service.ts';
import { closedRoute, type Destination, type HttpRoute } from '../kinds/virtual-service/virtual-service.ts';

export interface HostRoutes {
  readonly ingresses: readonly Config<Ingress>[];
  readonly http: readonly HttpRoute[];
  readonly origins: readonly Origin[];
}

interface PathRoute {
  readonly path: string;
  readonly isExact: boolean;
  readonly route: HttpRoute;
}

interface WrittenRoute extends PathRoute {
  readonly origin: Origin;
}

/** The longest path is first, and exact paths precede prefixes. Paths with an unknown port and default backends are omitted. */
export function* findRoutesInSteps(
  ingresses: readonly Config<Ingress>[],
  services: readonly Config<KubernetesService>[],
  domain: string,
): Steps<ReadonlyMap<string, HostRoutes>> {
  const backends = new Backends(services, domain);
  const hosts = new Map<string, { ingresses: Set<Config<Ingress>>; routes: WrittenRoute[] }>();
  for (const ingress of ingresses) {
    for (const [index, { host, http }] of ingress.spec.spec.rules.entries()) {
      const name = host === undefined || host === '' ? '*' : host;
      const openRoutes = (http?.paths ?? []).flatMap((path, pathIndex) => {
        const origin = { key: configKeyOf(ingress), path: ['spec', 'rules', index, 'http', 'paths', pathIndex] };
        const routes = routeOf(path, backends.destinationOf(path.backend, ingress.namespace));
        return routes.map((route) => ({ ...route, origin }));
      });
      const routes = ingress.isClosed
        ? openRoutes.map((openRoute) => ({ ...openRoute, route: closedRoute(openRoute.route) }))
        : openRoutes;
      if (routes.length === 0) continue;
      const hostRoutes = hosts.get(name) ?? { ingresses: new Set(), routes: [] };
      hosts.set(name, hostRoutes);
      hostRoutes.ingresses.add(ingress);
      hostRoutes.routes.push(...routes);
    }
    yield;
  }
  const routesByHost = new Map<string, HostRoutes>();
  for (const [host, { ingresses, routes }] of hosts) {
    routes.sort(comparePrecedence);
    const http = routes.map(({ route }) => route);
    routesByHost.set(host, { ingresses: [...ingresses], http, origins: routes.map(({ origin }) => origin) });
    yield;
  }
  return routesByHost;
}

function comparePrecedence(a: PathRoute, b: PathRoute): number {
  return b.path.length - a.path.length || Number(b.isExact) - Number(a.isExact);
}

function routeOf({ path, pathType }: IngressPath, destination: Destination | undefined): PathRoute[] {
  if (destination === undefined) return [];
  const route = [{ destination, weight: 100 }];
  const exactRoute = (text: string): PathRoute => ({
    path: text,
    isExact: true,
    route: { match: [{ uri: { exact: text } }], route },
  });
  const prefix = (text: string): PathRoute => ({
    path: text,
    isExact: false,
    route: { match: [{ uri: { prefix: text } }], route },
  });
  if (pathType === 'Exact') return [exactRoute(path === '' ? '/' : path)];
  if (pathType === 'Prefix') return [segments(path.replace(/\/+$/, ''), prefix('/'), route)];
  if (path === '') return [prefix('/')];
  const pathPrefix = /^(.*?)\.?\*$/.exec(path)?.[1];
  return [pathPrefix === undefined ? exactRoute(path) : prefix(pathPrefix === '' ? '/' : pathPrefix)];
}

/** Prefix `/a` matches `/a` and everything below `/a/`, but not `/ab`. */
function segments(path: string, rootRoute: PathRoute, route: HttpRoute['route']): PathRoute {
  if (path === '') return rootRoute;
  // In a `bySegments` prefix, Envoy accepts no `?`, no `#` and no slash at the end.
  const match = /^[^?#]+[^?#/]$/.test(path)
    ? [{ uri: { prefix: path }, bySegments: true }]
    : [{ uri: { exact: path } }, { uri: { prefix: `${path}/` } }];
  return { path, isExact: false, route: { match, route: route! } };
}

class Backends {
  readonly #services: ReadonlyMap<string, KubernetesService>;
  readonly #domain: string;

  constructor(services: readonly Config<KubernetesService>[], domain: string) {
    this.#services = new Map(services.map(({ namespace, name, spec }) => [`${namespace}/${name}`, spec]));
    this.#domain = domain;
  }

  destinationOf({ service }: IngressBackend, namespace: string): Destination | undefined {
    if (service === undefined) return undefined;
    const number = service.port.number ?? this.#portNamed(service.port.name, `${namespace}/${service.name}`);
    if (number === undefined) return undefined;
    return { host: `${service.name}.${namespace}.svc.${this.#domain}`, port: { number } };
  }

  #portNamed(name: string | undefined, service: string): number | undefined {
    if (name === undefined) return undefined;
    return this.#services.get(service)?.spec.ports.find((port) => port.name === name)?.port;
  }
}
