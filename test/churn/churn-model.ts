/**
 * Visibility in the churn mesh, and thus the proxies that a change affects. Computed from the rules of Sidecar objects
 * and exportTo, independently of the server's code. Pure.
 *
 * A service, its route and its rule are in one namespace. A service that is exported to all namespaces is visible where
 * the Sidecar object imports its namespace; a private service is visible in its own namespace.
 */
import type { Kind } from '../sidecars/xds-types.ts';

/** Services that the Sidecar object of a namespace imports in addition to its own. */
export type Visibility =
  /** No other services. */
  | { readonly sees: 'own' }
  /** All services of another namespace. */
  | { readonly sees: 'neighbour'; readonly of: number }
  /** One service of another namespace. */
  | { readonly sees: 'one service'; readonly of: number }
  /** All services, by a Sidecar object or without one. */
  | { readonly sees: 'all' };

const namespaceCount = 50;
/** The last namespaces, whose proxies never see a change. */
const quietCount = 8;

/** Namespaces with services. */
export const namespaces = Array.from({ length: namespaceCount }, (_, i) => `ns-${i}`);
export const busyNamespaces = namespaces.slice(0, -quietCount);
export const quietNamespaces = namespaces.slice(-quietCount);
/** Namespace of proxies without a Sidecar object and without services. */
export const wideNamespace = 'wide';
/** Namespace of gateways. */
export const edgeNamespace = 'edge';

/** The service that Sidecar objects of `one service` import. */
export const namedService = 0;

/** @param rotation number of changes of the Sidecar object, each of which imports another neighbour */
export function visibilityOf(namespace: string, rotation = 0): Visibility {
  const number = namespaces.indexOf(namespace);
  if (number < 0) return { sees: 'all' };
  if (number >= busyNamespaces.length) return { sees: 'own' };
  const other = (offset: number): number => (number + offset) % busyNamespaces.length;
  if (number % 14 === 5) return { sees: 'all' };
  if (number % 6 === 0) return { sees: 'neighbour', of: other(1 + (rotation % 2)) };
  if (number % 6 === 3) return { sees: 'one service', of: other(2) };
  return { sees: 'own' };
}

/** Namespaces whose Sidecar object changes. */
export const namespacesWithSidecarChanges = busyNamespaces.filter(
  (namespace) => visibilityOf(namespace).sees === 'neighbour',
);

export interface ServiceId {
  readonly namespace: string;
  /** Index within the namespace, from 0. */
  readonly service: number;
}

export const hostOf = ({ namespace, service }: ServiceId): string => `svc-${service}.${namespace}.svc.cluster.local`;

/** These services are private in the initial mesh. */
export const isPrivateAtFirst = (service: number): boolean => service % 5 === 4;
/** Whether the route or the rule of a service is exported only to its own namespace. */
export const isRoutePrivate = (service: number): boolean => service % 4 === 2;
export const isRulePrivate = (service: number): boolean => service % 3 === 1;
/** Whether a gateway route leads to the service. */
export const isOnGateway = (service: number): boolean => service % 4 === 0;

export const changeKinds = [
  'endpoints',
  'route',
  'rule',
  'leave',
  'return',
  'export',
  'gateway route',
  'sidecar',
] as const;
export type ChangeKind = (typeof changeKinds)[number];

/** Effect of a change on a proxy: a resource that is added, removed or changed. */
export interface ChangeEffect {
  readonly kind: Kind;
  readonly name: string;
  readonly effectKind: 'arrival' | 'removal' | 'content';
}

/** The proxies that a change affects, and the effect. */
export interface Affected {
  /** Host of the service; `undefined` if several services are affected. */
  readonly host: string | undefined;
  /** Namespaces of the affected proxies. */
  readonly namespaces: ReadonlySet<string>;
  readonly kinds: ReadonlySet<Kind>;
  /** A resource that each affected proxy must receive or have removed; `undefined` if that is uncertain. */
  readonly effect: ChangeEffect | undefined;
  /** Whether the effect persists unless the service itself is added or removed. */
  readonly isSteady: boolean;
}

const listeners = [...namespaces, wideNamespace, edgeNamespace];
const clusterOf = (host: string): string => `outbound|8080||${host}`;
/** Route configurations of the sidecars' port and of the gateway's port. */
export const routeNames = { sidecar: '8080', gateway: 'http.8080' } as const;

const steadyKinds: ReadonlySet<ChangeKind> = new Set(['endpoints', 'route', 'rule', 'gateway route']);

export class ChurnModel {
  readonly #servicesEach: number;
  readonly #removedServices = new Map<string, Set<number>>(namespaces.map((namespace) => [namespace, new Set()]));
  /** Services whose export differs from the initial mesh. */
  readonly #withChangedExport = new Set<string>();
  readonly #sidecarRevisions = new Map<string, number>();

  constructor(servicesEach: number) {
    this.#servicesEach = servicesEach;
  }

  removedServices(namespace: string): ReadonlySet<number> {
    return this.#removedServices.get(namespace)!;
  }

  isPrivate(id: ServiceId): boolean {
    return isPrivateAtFirst(id.service) !== this.#withChangedExport.has(hostOf(id));
  }

  shapeOf(namespace: string): Visibility {
    return visibilityOf(namespace, this.#sidecarRevisions.get(namespace));
  }

  sidecarRevision(namespace: string): number {
    return this.#sidecarRevisions.get(namespace) ?? 0;
  }

  /** Whether proxies of a namespace see a service, provided that it exists. */
  sees(listener: string, id: ServiceId): boolean {
    return listener === id.namespace || (!this.isPrivate(id) && this.#shows(listener, id));
  }

  /** Hosts of all services that proxies of a namespace see. */
  visibleHosts(listener: string): string[] {
    return namespaces.flatMap((namespace) =>
      Array.from({ length: this.#servicesEach }, (_, service) => ({ namespace, service }))
        .filter((id) => !this.removedServices(namespace).has(id.service) && this.sees(listener, id))
        .map(hostOf),
    );
  }

  /** Applies a change. @returns the affected proxies */
  apply(kind: ChangeKind, id: ServiceId): Affected {
    return { ...this.#affectedBy(kind, id), isSteady: steadyKinds.has(kind) };
  }

  #affectedBy(kind: ChangeKind, id: ServiceId): Omit<Affected, 'isSteady'> {
    const host = hostOf(id);
    const cluster = (how: ChangeEffect['effectKind']): ChangeEffect => ({
      kind: 'CDS',
      name: clusterOf(host),
      effectKind: how,
    });
    const seeing = this.#listeners((listener) => this.sees(listener, id));
    switch (kind) {
      case 'endpoints':
        return affected(host, seeing, ['EDS'], { kind: 'EDS', name: clusterOf(host), effectKind: 'content' });
      case 'route': {
        const affectedNamespaces = seeing.filter(
          (listener) => listener !== edgeNamespace && (!isRoutePrivate(id.service) || listener === id.namespace),
        );
        return affected(host, affectedNamespaces, ['RDS'], {
          kind: 'RDS',
          name: routeNames.sidecar,
          effectKind: 'content',
        });
      }
      case 'rule': {
        const affectedNamespaces = seeing.filter((listener) => !isRulePrivate(id.service) || listener === id.namespace);
        return affected(host, affectedNamespaces, ['CDS', 'EDS'], cluster('content'));
      }
      case 'leave':
        this.#removedServices.get(id.namespace)!.add(id.service);
        return affected(host, seeing, ['CDS', 'EDS', 'RDS'], cluster('removal'));
      case 'return':
        this.#removedServices.get(id.namespace)!.delete(id.service);
        return affected(host, seeing, ['CDS', 'EDS', 'RDS'], cluster('arrival'));
      case 'export': {
        if (!this.#withChangedExport.delete(host)) this.#withChangedExport.add(host);
        const seeingNow = new Set(this.#listeners((listener) => this.sees(listener, id)));
        const previouslySeeing = new Set(seeing);
        const affectedNamespaces = listeners.filter(
          (listener) => seeingNow.has(listener) !== previouslySeeing.has(listener),
        );
        return affected(
          host,
          affectedNamespaces,
          ['CDS', 'EDS', 'RDS'],
          cluster(this.isPrivate(id) ? 'removal' : 'arrival'),
        );
      }
      case 'gateway route':
        return affected(host, [edgeNamespace], ['RDS'], {
          kind: 'RDS',
          name: routeNames.gateway,
          effectKind: 'content',
        });
      case 'sidecar':
        this.#sidecarRevisions.set(id.namespace, this.sidecarRevision(id.namespace) + 1);
        return affected(undefined, [id.namespace], ['CDS', 'EDS', 'RDS'], undefined);
    }
  }

  #listeners(isAffected: (listener: string) => boolean): string[] {
    return listeners.filter(isAffected);
  }

  #shows(listener: string, { namespace, service }: ServiceId): boolean {
    const shape = this.shapeOf(listener);
    switch (shape.sees) {
      case 'all':
        return true;
      case 'own':
        return false;
      case 'neighbour':
        return namespaces[shape.of] === namespace;
      case 'one service':
        return namespaces[shape.of] === namespace && service === namedService;
    }
  }
}

const affected = (
  host: string | undefined,
  affectedNamespaces: readonly string[],
  kinds: readonly Kind[],
  effect: Affected['effect'],
): Omit<Affected, 'isSteady'> => ({
  host,
  namespaces: new Set(affectedNamespaces),
  kinds: new Set(kinds),
  effect,
});
