/** Separate from the translation, so that pushes do not wait for the status. */
import type { Steps } from '../../../runtime/turns.ts';
import type { Config } from '../../config/config.ts';
import type { ConfigSet } from '../../config/config-set.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import { attachInSteps, type ParentOutcome } from './attachments.ts';
import { backendTlsStatuses } from './backend-tls-status.ts';
import { type KnownGateway, type KnownListener, knownGateway } from './gateway-listeners.ts';
import { type GatewayStatusContext, gatewayStatusOf, servicesByGateway } from './gateway-status.ts';
import { type ClassStatus, condition, type GatewayStatus, type RouteStatus } from './object-conditions.ts';
import { routeStatusOf } from './route-status.ts';
import { supportedFeatures } from './supported-features.ts';
import {
  controllerName,
  type GatewayApiSources,
  l4RoutesIn,
  type RouteKind,
  routesIn,
  TranslationContext,
} from './translation-context.ts';

export type GatewayApiStatusSources = GatewayApiSources & Pick<ConfigSet, 'Secret' | 'ConfigMap' | 'BackendTLSPolicy'>;

/** By `namespace/name`. Contains all routes, because a route may have lost its last parent of this control plane. */
export interface GatewayApiStatus extends Readonly<Record<RouteKind, ReadonlyMap<string, RouteStatus>>> {
  readonly BackendTLSPolicy: ReadonlyMap<string, RouteStatus>;
  readonly GatewayClass: ReadonlyMap<string, ClassStatus>;
  readonly KubernetesGateway: ReadonlyMap<string, GatewayStatus>;
}

/** @param isForeignGateway whether another revision of the control plane reports on a Gateway */
export function* computeGatewayApiStatusInSteps(
  sources: GatewayApiStatusSources,
  domain: string,
  isForeignGateway: (gateway: Config) => boolean = () => false,
): Steps<GatewayApiStatus> {
  const context = new TranslationContext(sources, domain);
  const gatewaysByName = new Map<string, KnownGateway>();
  const otherRevisions = new Set<string>();
  const isAttachedToForeign = ({ namespace, spec }: Config<RouteObject>, index: number): boolean => {
    const parent = spec.parentRefs[index]!;
    return parent.kind === 'Gateway' && otherRevisions.has(`${parent.namespace ?? namespace}/${parent.name}`);
  };
  for (const gateway of sources.KubernetesGateway) {
    // Includes Gateways of other revisions, whose attached routes count towards the limit, as in the translation.
    gatewaysByName.set(keyOf(gateway), knownGateway(gateway, context));
    if (isForeignGateway(gateway)) otherRevisions.add(keyOf(gateway));
    yield;
  }
  const outcomesByRoute = new Map<Config, ParentOutcome[]>();
  const { toListeners } = yield* attachInSteps(
    [...routesIn(sources), ...l4RoutesIn(sources)],
    gatewaysByName,
    context,
    (route, index, parentOutcome) => {
      const routeOutcomes = outcomesByRoute.get(route) ?? [];
      routeOutcomes[index] = isAttachedToForeign(route, index) ? 'foreign' : parentOutcome;
      outcomesByRoute.set(route, routeOutcomes);
    },
  );
  const counts = new Map<KnownListener, number>();
  for (const { listener, isClosed } of toListeners)
    if (!isClosed) counts.set(listener, (counts.get(listener) ?? 0) + 1);
  const statusContext: GatewayStatusContext = {
    translation: context,
    secrets: new Map(sources.Secret.map((secret) => [keyOf(secret), secret])),
    services: servicesByGateway(sources.Service),
  };
  const gateways = new Map<string, GatewayStatus>();
  for (const gateway of sources.KubernetesGateway) {
    const { isImplementedHere, listeners } = gatewaysByName.get(keyOf(gateway))!;
    if (isImplementedHere && !otherRevisions.has(keyOf(gateway))) {
      const attachedCount = (listener: KnownListener): number => counts.get(listener) ?? 0;
      gateways.set(keyOf(gateway), gatewayStatusOf(gateway, listeners, attachedCount, statusContext));
    }
    yield;
  }
  const statusesOf = function* (routes: readonly Config<RouteObject>[]): Steps<Map<string, RouteStatus>> {
    const statuses = new Map<string, RouteStatus>();
    for (const route of routes) {
      statuses.set(keyOf(route), routeStatusOf(route, outcomesByRoute.get(route) ?? [], context));
      yield;
    }
    return statuses;
  };
  const configMaps = new Map(sources.ConfigMap.map((configMapObject) => [keyOf(configMapObject), configMapObject]));
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

function classesOf({ GatewayClass: classes }: GatewayApiStatusSources): ReadonlyMap<string, ClassStatus> {
  const ownClasses = classes.filter(({ spec }) => spec.controllerName === controllerName);
  return new Map(
    ownClasses.map((gatewayClass) => [
      keyOf(gatewayClass),
      {
        ...(gatewayClass.generation !== undefined && { generation: gatewayClass.generation }),
        conditions: [condition('Accepted', true, 'Accepted', 'accepted by this control plane')],
        supportedFeatures,
      },
    ]),
  );
}

function keyOf({ namespace, name }: Config): string {
  return `${namespace}/${name}`;
}
