import { runToEnd, type Steps } from '../../../runtime/turns.ts';
import type { Config } from '../../config/config.ts';
import type { Problem } from '../../config/problem.ts';
import { withPreviousIdentity } from '../translated-objects.ts';
import { attachInSteps } from './attachments.ts';
import { gatewayOf, isHttpListener, type KnownGateway, knownGateway } from './gateway-listeners.ts';
import { gatewayVirtualServices } from './gateway-routes.ts';
import { l4VirtualServices } from './l4-routes.ts';
import { serviceVirtualServices } from './service-routes.ts';
import {
  type GatewayApiSources,
  isL4Kind,
  l4RoutesIn,
  routeKinds,
  routesIn,
  TranslationContext,
} from './translation-context.ts';

export interface GatewayApiTranslation {
  readonly objects: ReadonlyMap<string, Config>;
  readonly problems: ReadonlyMap<string, Problem>;
  readonly dependencies: ReadonlySet<string>;
  readonly beyondLimit: number;
}

export const noTranslation: GatewayApiTranslation = {
  objects: new Map(),
  problems: new Map(),
  dependencies: new Set(),
  beyondLimit: 0,
};

const gatewayApiKinds: readonly string[] = ['GatewayClass', 'KubernetesGateway', ...routeKinds, 'ReferenceGrant'];

export function translationMayDiffer(previous: GatewayApiTranslation, changedKeys: Iterable<string>): boolean {
  for (const key of changedKeys) {
    if (previous.dependencies.has(key) || gatewayApiKinds.includes(key.slice(0, key.indexOf('/')))) return true;
  }
  return false;
}

/** @param previous the last translation, whose unchanged objects keep their identity */
export function translateGatewayApi(
  sources: GatewayApiSources,
  domain: string,
  previous?: GatewayApiTranslation,
): GatewayApiTranslation {
  return runToEnd(translateGatewayApiInSteps(sources, domain, previous));
}

export function* translateGatewayApiInSteps(
  sources: GatewayApiSources,
  domain: string,
  previous: GatewayApiTranslation = noTranslation,
): Steps<GatewayApiTranslation> {
  const routes = routesIn(sources);
  const l4Routes = l4RoutesIn(sources);
  if (sources.KubernetesGateway.length + routes.length + l4Routes.length === 0) return noTranslation;
  const context = new TranslationContext(sources, domain);
  const gateways = new Map<string, KnownGateway>();
  for (const gateway of sources.KubernetesGateway) {
    gateways.set(`${gateway.namespace}/${gateway.name}`, knownGateway(gateway, context));
    yield;
  }
  // All kinds are attached together, because they share the limit of their namespace.
  const { toListeners, toServices, beyondLimit } = yield* attachInSteps([...routes, ...l4Routes], gateways, context);
  const isL4 = ({ route }: { readonly route: Config }): boolean => isL4Kind(route.kind);
  const isL7 = (attachment: { readonly route: Config }): boolean => !isL4(attachment);
  const attachmentsByGateway = Map.groupBy(toListeners.filter(isL7), ({ listener }) => listener.gateway);
  const objects: Config[] = [];
  for (const { listeners } of gateways.values()) {
    const gateway = listeners[0]?.gateway;
    if (gateway === undefined) continue;
    for (const listener of listeners) {
      if (listener.server !== undefined || listener.closes === true) objects.push(gatewayOf(listener, context));
    }
    const requestListeners = listeners.filter(isHttpListener);
    for (const virtualService of yield* gatewayVirtualServices(
      requestListeners,
      attachmentsByGateway.get(gateway) ?? [],
      context,
    ))
      objects.push(virtualService);
  }
  for (const virtualService of yield* serviceVirtualServices(toServices.filter(isL7), context))
    objects.push(virtualService);
  const l4 = { toListeners: toListeners.filter(isL4), toServices: toServices.filter(isL4) };
  for (const virtualService of yield* l4VirtualServices(l4, context)) objects.push(virtualService);
  return {
    objects: yield* withPreviousIdentity(objects, previous.objects),
    problems: context.problems,
    dependencies: context.dependencies,
    beyondLimit,
  };
}
