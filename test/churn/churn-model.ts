/**
 * Who sees what in the mesh of the churn, and hence which proxies a change concerns: worked out from the rules of Sidecar
 * objects and exportTo by ourselves, without anything of the server. Pure.
 *
 * A service, its route and its rule are of one namespace. What is exported to all is seen wherever a Sidecar object does not
 * leave the namespace out; what is exported to itself, by its own namespace.
 */
import type { Kind } from '../sidecars/xds-types.ts';

/** What the Sidecar object of a namespace shows beside its own services. */
export type Shape =
  /** Nothing. */
  | { readonly sees: 'own' }
  /** All of another namespace. */
  | { readonly sees: 'neighbour'; readonly of: number }
  /** One service of another namespace. */
  | { readonly sees: 'one service'; readonly of: number }
  /** Everything: by a Sidecar object that says so, or because there is none. */
  | { readonly sees: 'all' };

const namespaceCount = 50;
/** The last ones: nothing that their proxies see ever changes. */
const quietCount = 8;

/** Namespaces with services. */
export const namespaces = Array.from({ length: namespaceCount }, (_, i) => `ns-${i}`);
export const busyNamespaces = namespaces.slice(0, -quietCount);
export const quietNamespaces = namespaces.slice(-quietCount);
/** Of proxies without a Sidecar object, and without services. */
export const wideNamespace = 'wide';
/** Of gateways. */
export const edgeNamespace = 'edge';

/** The service that a Sidecar object of another namespace names. */
export const namedService = 0;

/** @param turn how often the Sidecar object was changed: it shows another neighbour each time */
export function shapeOf(namespace: string, turn = 0): Shape {
  const number = namespaces.indexOf(namespace);
  if (number < 0) return { sees: 'all' };
  if (number >= busyNamespaces.length) return { sees: 'own' };
  const other = (by: number): number => (number + by) % busyNamespaces.length;
  if (number % 14 === 5) return { sees: 'all' };
  if (number % 6 === 0) return { sees: 'neighbour', of: other(1 + (turn % 2)) };
  if (number % 6 === 3) return { sees: 'one service', of: other(2) };
  return { sees: 'own' };
}

/** Those whose Sidecar object changes. */
export const turningNamespaces = busyNamespaces.filter((namespace) => shapeOf(namespace).sees === 'neighbour');

export interface ServiceId {
  readonly namespace: string;
  /** Of the namespace; from 0. */
  readonly service: number;
}

export const hostOf = ({ namespace, service }: ServiceId): string => `svc-${service}.${namespace}.svc.cluster.local`;

/** Some are of their own namespace alone from the beginning. */
export const isPrivateAtFirst = (service: number): boolean => service % 5 === 4;
/** Whether the route, or the rule, of a service is for its own namespace alone. */
export const isRoutePrivate = (service: number): boolean => service % 4 === 2;
export const isRulePrivate = (service: number): boolean => service % 3 === 1;
/** Whether a route of gateways goes to the service. */
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

/** What a proxy is sent because of a change: the resource comes, goes, or has other content. */
export interface Brought {
  readonly kind: Kind;
  readonly name: string;
  readonly how: 'arrival' | 'removal' | 'content';
}

/** Whom a change concerns, and what it brings them. */
export interface Affected {
  /** The host of the service; undefined: of more than one. */
  readonly host: string | undefined;
  /** Of the proxies. */
  readonly namespaces: ReadonlySet<string>;
  readonly kinds: ReadonlySet<Kind>;
  /** A resource that each of them must be sent, anew or as gone; undefined: none that is sure. */
  readonly brings: Brought | undefined;
  /** Whatever else happens to the service, short of its coming or going, what this brings is not undone by it. */
  readonly isSteady: boolean;
}

const listeners = [...namespaces, wideNamespace, edgeNamespace];
const clusterOf = (host: string): string => `outbound|8080||${host}`;
/** Names of route configurations: of the sidecars' port, and of the gateway's. */
export const routeNames = { sidecar: '8080', gateway: 'http.8080' } as const;

const steadyKinds: ReadonlySet<ChangeKind> = new Set(['endpoints', 'route', 'rule', 'gateway route']);

export class ChurnModel {
  readonly #servicesEach: number;
  readonly #gone = new Map<string, Set<number>>(namespaces.map((namespace) => [namespace, new Set()]));
  /** Services whose export is not as it was at first. */
  readonly #turned = new Set<string>();
  readonly #sidecarTurns = new Map<string, number>();

  constructor(servicesEach: number) {
    this.#servicesEach = servicesEach;
  }

  gone(namespace: string): ReadonlySet<number> {
    return this.#gone.get(namespace)!;
  }

  isPrivate(id: ServiceId): boolean {
    return isPrivateAtFirst(id.service) !== this.#turned.has(hostOf(id));
  }

  shapeOf(namespace: string): Shape {
    return shapeOf(namespace, this.#sidecarTurns.get(namespace));
  }

  sidecarTurn(namespace: string): number {
    return this.#sidecarTurns.get(namespace) ?? 0;
  }

  /** Whether proxies of a namespace see a service, if it is there. */
  sees(listener: string, id: ServiceId): boolean {
    return listener === id.namespace || (!this.isPrivate(id) && this.#shows(listener, id));
  }

  /** Hosts of all services that proxies of a namespace see. */
  hostsSeen(listener: string): string[] {
    return namespaces.flatMap((namespace) =>
      Array.from({ length: this.#servicesEach }, (_, service) => ({ namespace, service }))
        .filter((id) => !this.gone(namespace).has(id.service) && this.sees(listener, id))
        .map(hostOf),
    );
  }

  /** Takes a change. @returns whom it concerns */
  apply(kind: ChangeKind, id: ServiceId): Affected {
    return { ...this.#affectedBy(kind, id), isSteady: steadyKinds.has(kind) };
  }

  #affectedBy(kind: ChangeKind, id: ServiceId): Omit<Affected, 'isSteady'> {
    const host = hostOf(id);
    const cluster = (how: Brought['how']): Brought => ({ kind: 'CDS', name: clusterOf(host), how });
    const seeing = this.#listeners((listener) => this.sees(listener, id));
    switch (kind) {
      case 'endpoints':
        return affected(host, seeing, ['EDS'], { kind: 'EDS', name: clusterOf(host), how: 'content' });
      case 'route': {
        const told = seeing.filter(
          (listener) => listener !== edgeNamespace && (!isRoutePrivate(id.service) || listener === id.namespace),
        );
        return affected(host, told, ['RDS'], { kind: 'RDS', name: routeNames.sidecar, how: 'content' });
      }
      case 'rule': {
        const told = seeing.filter((listener) => !isRulePrivate(id.service) || listener === id.namespace);
        return affected(host, told, ['CDS', 'EDS'], cluster('content'));
      }
      case 'leave':
        this.#gone.get(id.namespace)!.add(id.service);
        return affected(host, seeing, ['CDS', 'EDS', 'RDS'], cluster('removal'));
      case 'return':
        this.#gone.get(id.namespace)!.delete(id.service);
        return affected(host, seeing, ['CDS', 'EDS', 'RDS'], cluster('arrival'));
      case 'export': {
        if (!this.#turned.delete(host)) this.#turned.add(host);
        const seeingNow = new Set(this.#listeners((listener) => this.sees(listener, id)));
        const before = new Set(seeing);
        const told = listeners.filter((listener) => seeingNow.has(listener) !== before.has(listener));
        return affected(host, told, ['CDS', 'EDS', 'RDS'], cluster(this.isPrivate(id) ? 'removal' : 'arrival'));
      }
      case 'gateway route':
        return affected(host, [edgeNamespace], ['RDS'], { kind: 'RDS', name: routeNames.gateway, how: 'content' });
      case 'sidecar':
        this.#sidecarTurns.set(id.namespace, this.sidecarTurn(id.namespace) + 1);
        return affected(undefined, [id.namespace], ['CDS', 'EDS', 'RDS'], undefined);
    }
  }

  #listeners(isTold: (listener: string) => boolean): string[] {
    return listeners.filter(isTold);
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
  told: readonly string[],
  kinds: readonly Kind[],
  brings: Affected['brings'],
): Omit<Affected, 'isSteady'> => ({ host, namespaces: new Set(told), kinds: new Set(kinds), brings });
