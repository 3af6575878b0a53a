import type { WarningCode } from '../../../runtime/errors.ts';
import { type Config, configKeyOf, configKeyText } from '../../config/config.ts';
import type { ConfigSet } from '../../config/config-set.ts';
import { type Problem, problemText } from '../../config/problem.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { AllowedRoutes } from '../../kinds/gateway-api/kubernetes-gateway.ts';
import type { KubernetesService } from '../../kinds/kubernetes/service.ts';
import { ReferenceGrants, type ReferenceSource, type ReferenceTarget } from '../../push-context/reference-grants.ts';
import { isDiscovered } from '../../services/kubernetes/discovery-namespaces.ts';

export const routeKinds = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'] as const;
export type RouteKind = (typeof routeKinds)[number];

export type GatewayApiSources = Pick<
  ConfigSet,
  'GatewayClass' | 'KubernetesGateway' | RouteKind | 'ReferenceGrant' | 'Namespace' | 'Service'
>;

export function routesIn({ HTTPRoute, GRPCRoute }: GatewayApiSources): readonly Config<RouteObject>[] {
  return GRPCRoute.length === 0 ? HTTPRoute : [...HTTPRoute, ...GRPCRoute];
}

export function l4RoutesIn({ TLSRoute, TCPRoute }: GatewayApiSources): readonly Config<RouteObject>[] {
  return [...TLSRoute, ...TCPRoute];
}

export function isL4Kind(kind: string): boolean {
  return kind === 'TLSRoute' || kind === 'TCPRoute';
}

export const controllerName = 'istio.io/gateway-controller';
/** The default class, which {@link controllerName} implements even without a GatewayClass object. */
export const defaultClass = 'istio';

export interface TranslationWarning {
  readonly code: WarningCode | 'LIMIT_EXCEEDED';
  readonly absent?: Problem['absent'];
}

const notProgrammedWarning: TranslationWarning = { code: 'NOT_PROGRAMMED' };

export class TranslationContext {
  /** A DNS domain such as `cluster.local`. */
  readonly domain: string;
  readonly problems = new Map<string, Problem>();
  /** Keys of other objects that were looked up, existing or not; their changes may change the result. */
  readonly dependencies = new Set<string>();
  readonly #services: ReadonlyMap<string, Config<KubernetesService>>;
  readonly #namespaces: ReadonlyMap<string, Config>;
  readonly #classes: ReadonlyMap<string, string>;
  readonly #grants: ReferenceGrants;

  constructor(sources: GatewayApiSources, domain: string) {
    this.domain = domain;
    this.#services = new Map(sources.Service.map((service) => [`${service.namespace}/${service.name}`, service]));
    this.#namespaces = new Map(sources.Namespace.map((namespace) => [namespace.name, namespace]));
    this.#classes = new Map(sources.GatewayClass.map(({ name, spec }) => [name, spec.controllerName]));
    this.#grants = new ReferenceGrants(sources.ReferenceGrant);
  }

  service(namespace: string, name: string): Config<KubernetesService> | undefined {
    this.dependencies.add(configKeyText({ kind: 'Service', namespace, name }));
    return this.#services.get(`${namespace}/${name}`);
  }

  hostOf(namespace: string, name: string): string {
    return `${name}.${namespace}.svc.${this.domain}`;
  }

  serviceOfHost(host: string): { readonly namespace: string; readonly name: string } | undefined {
    const suffix = `.svc.${this.domain}`;
    if (!host.endsWith(suffix)) return undefined;
    const [name, namespace, ...otherLabels] = host.slice(0, -suffix.length).split('.');
    return name === undefined || namespace === undefined || otherLabels.length > 0 ? undefined : { namespace, name };
  }

  isImplementedHere(className: string): boolean | undefined {
    const controller = this.#classes.get(className);
    if (controller !== undefined) return controller === controllerName;
    return className === defaultClass ? true : undefined;
  }

  allowsNamespace(
    { from, selector }: AllowedRoutes['namespaces'],
    listenerNamespace: string,
    namespace: string,
  ): boolean {
    if (from === 'All' || from === 'None') return from === 'All';
    if (from === 'Same') return listenerNamespace === namespace;
    // As in Kubernetes, an empty selector matches everything, but an absent one nothing.
    if (selector === undefined) return false;
    this.dependencies.add(configKeyText({ kind: 'Namespace', namespace: '', name: namespace }));
    return isDiscovered(namespace, this.#namespaces.get(namespace)?.labels, [selector]);
  }

  isGranted(source: ReferenceSource, target: ReferenceTarget): boolean {
    return this.#grants.allows(source, target);
  }

  /** Reports that part of an object is not active, once per version of the object. */
  warn(
    config: Config,
    field: string,
    message: string,
    { code, absent }: TranslationWarning = notProgrammedWarning,
  ): void {
    const key = configKeyOf(config);
    const { file, line } = config.source ?? { file: '', line: 1 };
    const object = `${key.kind} ${key.namespace}/${key.name}`;
    const problem: Problem = {
      ...{ severity: 'warning', file, line, object, key, field: `spec.${field}`, message },
      ...{ code, ...(absent && { absent }) },
    };
    this.problems.set(`${problemText(problem)} ${config.resourceVersion}`, problem);
  }
}
