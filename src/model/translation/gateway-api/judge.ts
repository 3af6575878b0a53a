/**
 * Computes the status of the Gateway API's objects. Pure and separate from the translation, so that pushes do not wait for it. Runs in
 * linear time: routes find parents and backends by name.
 */
import type { Steps } from '../../../runtime/turns.ts';
import type { Config } from '../../config/config.ts';
import type { ConfigSet } from '../../config/config-set.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import { attaching, type ParentOutcome } from './attachments.ts';
import { backendTlsStatuses } from './backend-tls-status.ts';
import { type KnownGateway, type KnownListener, knownGateway } from './gateway-listeners.ts';
import { type GatewaySurroundings, gatewayStatusOf, servicesByGateway } from './gateway-status.ts';
import { type ClassStatus, condition, type GatewayStatus, type RouteStatus } from './object-conditions.ts';
import { routeStatusOf } from './route-status.ts';
import { supportedFeatures } from './supported-features.ts';
import { controllerName, l4RoutesIn, type RouteKind, routesIn, type Sources, Surroundings } from './surroundings.ts';

export type JudgedSources = Sources & Pick<ConfigSet, 'Secret' | 'ConfigMap' | 'BackendTLSPolicy'>;

/**
 * Status of all objects that this control plane reports on, by `namespace/name`. Contains all routes, because one without a parent here may
 * have had one.
 */
export interface GatewayApiStatus extends Readonly<Record<RouteKind, ReadonlyMap<string, RouteStatus>>> {
  readonly BackendTLSPolicy: ReadonlyMap<string, RouteStatus>;
  readonly GatewayClass: ReadonlyMap<string, ClassStatus>;
  readonly KubernetesGateway: ReadonlyMap<string, GatewayStatus>;
}

/** @param isOfOthers whether another revision of the control plane reports on a Gateway */
export function* judgingGatewayApi(
  sources: JudgedSources,
  domain: string,
  isOfOthers: (gateway: Config) => boolean = () => false,
): Steps<GatewayApiStatus> {
  const around = new Surroundings(sources, domain);
  const known = new Map<string, KnownGateway>();
  const others = new Set<string>();
  const isAtOthers = ({ namespace, spec }: Config<RouteObject>, index: number): boolean => {
    const parent = spec.parentRefs[index]!;
    return parent.kind === 'Gateway' && others.has(`${parent.namespace ?? namespace}/${parent.name}`);
  };
  for (const gateway of sources.KubernetesGateway) {
    // Includes Gateways of other revisions: routes attached there count towards the limit, as in the translation.
    known.set(keyOf(gateway), knownGateway(gateway, around));
    if (isOfOthers(gateway)) others.add(keyOf(gateway));
    yield;
  }
  const outcomes = new Map<Config, ParentOutcome[]>();
  const { toListeners } = yield* attaching(
    [...routesIn(sources), ...l4RoutesIn(sources)],
    known,
    around,
    (route, index, outcome) => {
      const ofRoute = outcomes.get(route) ?? [];
      ofRoute[index] = isAtOthers(route, index) ? 'foreign' : outcome;
      outcomes.set(route, ofRoute);
    },
  );
  const counts = new Map<KnownListener, number>();
  for (const { listener, isClosed } of toListeners)
    if (!isClosed) counts.set(listener, (counts.get(listener) ?? 0) + 1);
  const surroundings: GatewaySurroundings = {
    around,
    secrets: new Map(sources.Secret.map((secret) => [keyOf(secret), secret])),
    services: servicesByGateway(sources.Service),
  };
  const gateways = new Map<string, GatewayStatus>();
  for (const gateway of sources.KubernetesGateway) {
    const { isOurs, listeners } = known.get(keyOf(gateway))!;
    if (isOurs && !others.has(keyOf(gateway))) {
      const attached = (listener: KnownListener): number => counts.get(listener) ?? 0;
      gateways.set(keyOf(gateway), gatewayStatusOf(gateway, listeners, attached, surroundings));
    }
    yield;
  }
  const statusesOf = function* (routes: readonly Config<RouteObject>[]): Steps<Map<string, RouteStatus>> {
    const statuses = new Map<string, RouteStatus>();
    for (const route of routes) {
      statuses.set(keyOf(route), routeStatusOf(route, outcomes.get(route) ?? [], around));
      yield;
    }
    return statuses;
  };
  const configMaps = new Map(sources.ConfigMap.map((one) => [keyOf(one), one]));
  const configMap = (namespace: string, name: string) => configMaps.get(`${namespace}/${name}`);
  return {
    BackendTLSPolicy: backendTlsStatuses(sources.BackendTLSPolicy, toListeners, { configMap }),
    GatewayClass: classesOf(sources),
    KubernetesGateway: gateways,
    HTTPRoute: yield* statusesOf(sources.HTTPRoute),
    GRPCRoute: yield* statusesOf(sources.GRPCRoute),
    TLSRoute: yield* statusesOf(sources.TLSRoute),
    TCPRoute: yield* statusesOf(sources.TCPRoute),
  };
}

function classesOf({ GatewayClass: classes }: JudgedSources): ReadonlyMap<string, ClassStatus> {
  const ours = classes.filter(({ spec }) => spec.controllerName === controllerName);
  return new Map(
    ours.map((one) => [
      keyOf(one),
      {
        ...(one.generation !== undefined && { generation: one.generation }),
        conditions: [condition('Accepted', true, 'Accepted', 'accepted by this control plane')],
        supportedFeatures,
      },
    ]),
  );
}

function keyOf({ namespace, name }: Config): string {
  return `${namespace}/${name}`;
}
