/**
 * Limits the routes that the VirtualServices of a namespace get from delegates. Each route of a delegate is combined with each match of the
 * delegating route and each host, so two objects of 300 kB could result in 16 million routes. Beyond the limit, delegating routes of the youngest
 * objects respond with 503.
 */
import { createHash } from 'node:crypto';
import type { Config } from '../../../model/config/config.ts';
import { itemsBeyondLimit, type LimitShare } from '../../../model/config/oldest-first.ts';
import { maxDelegatedRoutes, maxHostRoutes } from '../../../model/kinds/object-limits.ts';
import { routeUnits } from '../../../model/kinds/virtual-service/virtual-service.size.ts';
import { closedRoute, type VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { Steps } from '../../../runtime/turns.ts';
import {
  type BudgetSettings,
  type LimitExcess,
  type LimitedObject,
  type LimitedObjects,
  type NamespaceBudget,
  recomputeLimited,
} from './limited-objects.ts';

interface DelegatingRoute extends LimitShare {
  readonly index: number;
  /** Delegates in other namespaces have a separate limit, so that their authors cannot use up the limit of the namespace. */
  readonly isForeign: boolean;
}

export class DelegateBudget implements NamespaceBudget {
  readonly #delegates = new Map<string, number>();
  readonly #delegatingObjects = new Map<string, Map<string, Config>>();

  *limitInSteps(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    _settings: BudgetSettings,
    previous: ReadonlyMap<string, LimitedObject>,
  ): Steps<LimitedObjects> {
    let touchedKeys = new Set<string>();
    let hasDelegateChanged = false;
    for (const key of keys) {
      yield;
      if (!key.startsWith('VirtualService/')) continue;
      const config = objectOf(key);
      if (this.#setDelegate(key, config)) hasDelegateChanged = true;
      if (this.#setDelegatingObject(key, config)) touchedKeys.add(namespaceOf(key));
    }
    if (hasDelegateChanged) touchedKeys = new Set([...touchedKeys, ...this.#delegatingObjects.keys()]);
    return yield* recomputeLimited(touchedKeys, previous, (name) => this.#excessOf(name));
  }

  #setDelegate(key: string, config: Config | undefined): boolean {
    const id = key.slice(key.indexOf('/') + 1);
    const delegateConfig = this.#delegates.get(id);
    const spec = config?.spec as VirtualService | undefined;
    const isDelegate = spec !== undefined && spec.hosts.length === 0;
    const units = isDelegate ? (spec.http ?? []).reduce((sum, route) => sum + routeUnits(route), 0) : undefined;
    if (units === undefined) this.#delegates.delete(id);
    else this.#delegates.set(id, units);
    return delegateConfig !== units;
  }

  #setDelegatingObject(key: string, config: Config | undefined): boolean {
    const namespace = namespaceOf(key);
    const delegatingOfNamespace = this.#delegatingObjects.get(namespace) ?? new Map<string, Config>();
    const wasDelegating = delegatingOfNamespace.delete(key);
    const spec = config?.spec as VirtualService | undefined;
    const isDelegating =
      spec !== undefined && spec.hosts.length > 0 && (spec.http ?? []).some(({ delegate }) => delegate);
    if (isDelegating) delegatingOfNamespace.set(key, config!);
    if (delegatingOfNamespace.size > 0) this.#delegatingObjects.set(namespace, delegatingOfNamespace);
    else this.#delegatingObjects.delete(namespace);
    return wasDelegating || isDelegating;
  }

  *#excessOf(namespace: string): Generator<LimitExcess> {
    const allowedRoutes: DelegatingRoute[] = [];
    const excessRoutes: DelegatingRoute[] = [];
    for (const delegatingObject of this.#delegatingObjects.get(namespace)?.values() ?? []) {
      for (const routes of groupByShare(this.#delegatingRoutes(delegatingObject))) {
        const excessRouteSet = new Set(itemsBeyondLimit(routes, maxHostRoutes));
        for (const route of routes) (excessRouteSet.has(route) ? excessRoutes : allowedRoutes).push(route);
      }
    }
    for (const routes of groupByShare(allowedRoutes))
      excessRoutes.push(...itemsBeyondLimit(routes, maxDelegatedRoutes));
    for (const [config, routes] of Map.groupBy(excessRoutes, ({ config }) => config)) {
      yield excessOf(
        config,
        routes.map(({ index }) => index).sort((a, b) => a - b),
      );
    }
  }

  #delegatingRoutes(config: Config): readonly DelegatingRoute[] {
    const { hosts, http = [] } = config.spec as VirtualService;
    return http.flatMap((route, index) => {
      if (route.delegate === undefined) return [];
      const { namespace = config.namespace, name } = route.delegate;
      const cost = hosts.length * routeUnits(route) * (this.#delegates.get(`${namespace}/${name}`) ?? 0);
      return { config, index, cost, isForeign: namespace !== config.namespace };
    });
  }
}

function groupByShare(routes: readonly DelegatingRoute[]): Iterable<readonly DelegatingRoute[]> {
  return Map.groupBy(routes, ({ isForeign }) => isForeign).values();
}

function namespaceOf(key: string): string {
  return key.split('/', 2)[1]!;
}

function excessOf(originalConfig: Config, routes: readonly number[]): LimitExcess {
  const spec = originalConfig.spec as VirtualService;
  return {
    original: originalConfig,
    variant: createHash('sha256').update(routes.join()).digest('hex').slice(0, 12),
    limit: () => {
      const excessIndexes = new Set(routes);
      const http = (spec.http ?? []).map((route, index) => (excessIndexes.has(index) ? closedRoute(route) : route));
      return {
        config: { spec: { ...spec, http } },
        field: `spec.http[${routes[0]}].delegate`,
        message:
          `${routes.length} routes respond with 503: with delegates (hosts x matches x matches of the delegate), the limit is ` +
          `${maxHostRoutes} routes for one object and ${maxDelegatedRoutes} for all objects of namespace ${originalConfig.namespace} ` +
          '(LIMIT_EXCEEDED): reduce hosts, matches or delegates',
      };
    },
  };
}
