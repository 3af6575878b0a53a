/** What the translation of the Gateway API's objects looks up: Services, namespaces' labels, classes, grants. */

import type { WarningCode } from '../../../runtime/errors.ts';
import { type Config, configKeyOf, configKeyText } from '../../config/config.ts';
import type { ConfigSet } from '../../config/config-set.ts';
import { type Problem, problemText } from '../../config/problem.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { AllowedRoutes } from '../../kinds/gateway-api/kubernetes-gateway.ts';
import type { KubernetesService } from '../../kinds/kubernetes/service.ts';
import { ReferenceGrants, type ReferenceSource, type ReferenceTarget } from '../../push-context/reference-grants.ts';
import { isDiscovered } from '../../services/kubernetes/discovery-namespaces.ts';

/** Kinds of routes. */
export const routeKinds = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'] as const;
export type RouteKind = (typeof routeKinds)[number];

/** The kinds that are read. */
export type Sources = Pick<
  ConfigSet,
  'GatewayClass' | 'KubernetesGateway' | RouteKind | 'ReferenceGrant' | 'Namespace' | 'Service'
>;

/** Those that requests go by. */
export function routesIn({ HTTPRoute, GRPCRoute }: Sources): readonly Config<RouteObject>[] {
  return GRPCRoute.length === 0 ? HTTPRoute : [...HTTPRoute, ...GRPCRoute];
}

/** Those that connections go by, whatever is in them. */
export function l4RoutesIn({ TLSRoute, TCPRoute }: Sources): readonly Config<RouteObject>[] {
  return [...TLSRoute, ...TCPRoute];
}

export function isL4Kind(kind: string): boolean {
  return kind === 'TLSRoute' || kind === 'TCPRoute';
}

/** A class with this controller's name is this control plane's. */
export const controllerName = 'istio.io/gateway-controller';
/** The class of Gateways for this control plane: it needs no object, and {@link controllerName} is its controller without one. */
export const defaultClass = 'istio';

/** What a warning is about. */
export interface WarningAbout {
  readonly code: WarningCode | 'LIMIT_EXCEEDED';
  /** Kind and namespace of an object that does not exist. */
  readonly absent?: Problem['absent'];
}

const notProgrammed: WarningAbout = { code: 'NOT_PROGRAMMED' };

export class Surroundings {
  /** `cluster.local`. */
  readonly domain: string;
  readonly problems = new Map<string, Problem>();
  /** Keys of objects of other kinds that were asked for, there or not: another one may change the result. */
  readonly lookedUp = new Set<string>();
  readonly #services: ReadonlyMap<string, Config<KubernetesService>>;
  readonly #namespaces: ReadonlyMap<string, Config>;
  readonly #classes: ReadonlyMap<string, string>;
  readonly #grants: ReferenceGrants;

  constructor(sources: Sources, domain: string) {
    this.domain = domain;
    this.#services = new Map(sources.Service.map((service) => [`${service.namespace}/${service.name}`, service]));
    this.#namespaces = new Map(sources.Namespace.map((namespace) => [namespace.name, namespace]));
    this.#classes = new Map(sources.GatewayClass.map(({ name, spec }) => [name, spec.controllerName]));
    this.#grants = new ReferenceGrants(sources.ReferenceGrant);
  }

  service(namespace: string, name: string): Config<KubernetesService> | undefined {
    this.lookedUp.add(configKeyText({ kind: 'Service', namespace, name }));
    return this.#services.get(`${namespace}/${name}`);
  }

  /** `cart.shop.svc.cluster.local`. */
  hostOf(namespace: string, name: string): string {
    return `${name}.${namespace}.svc.${this.domain}`;
  }

  /** Which Service has a host as its name in the cluster, there or not; undefined for a name of another kind. */
  serviceOfHost(host: string): { readonly namespace: string; readonly name: string } | undefined {
    const suffix = `.svc.${this.domain}`;
    if (!host.endsWith(suffix)) return undefined;
    const [name, namespace, ...more] = host.slice(0, -suffix.length).split('.');
    return name === undefined || namespace === undefined || more.length > 0 ? undefined : { namespace, name };
  }

  /** Undefined for a class that nobody knows. */
  isOurs(className: string): boolean | undefined {
    const controller = this.#classes.get(className);
    if (controller !== undefined) return controller === controllerName;
    return className === defaultClass ? true : undefined;
  }

  /** Whether routes of a namespace may be at a listener of another one, or the same. */
  allowsNamespace({ from, selector }: AllowedRoutes['namespaces'], own: string, namespace: string): boolean {
    if (from === 'All' || from === 'None') return from === 'All';
    if (from === 'Same') return own === namespace;
    // As in Kubernetes an empty selector selects everything, and none nothing.
    if (selector === undefined) return false;
    this.lookedUp.add(configKeyText({ kind: 'Namespace', namespace: '', name: namespace }));
    return isDiscovered(namespace, this.#namespaces.get(namespace)?.labels, [selector]);
  }

  /** Whether an object may refer to one of another namespace. */
  isGranted(from: ReferenceSource, to: ReferenceTarget): boolean {
    return this.#grants.allows(from, to);
  }

  /** Something of an object is not in force. Told once for each version of the object. */
  warn(about: Config, field: string, message: string, { code, absent }: WarningAbout = notProgrammed): void {
    const key = configKeyOf(about);
    const { file, line } = about.source ?? { file: '', line: 1 };
    const object = `${key.kind} ${key.namespace}/${key.name}`;
    const problem: Problem = {
      ...{ severity: 'warning', file, line, object, key, field: `spec.${field}`, message },
      ...{ code, ...(absent && { absent }) },
    };
    this.problems.set(`${problemText(problem)} ${about.resourceVersion}`, problem);
  }
}
