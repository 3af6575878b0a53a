/**
 * Limits attachments of one namespace's routes to Gateways and Services, because each match is translated for each host of each listener. The oldest
 * routes stay attached. A route beyond the limit responds with 503, so that a wider route does not receive its requests. A route beyond twice the
 * limit is detached.
 */
import type { Config } from '../../config/config.ts';
import { itemsBeyondLimit, type LimitShare } from '../../config/oldest-first.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import { maxAttachedMatches } from '../../kinds/object-limits.ts';
import { routeUnits } from '../../kinds/virtual-service/virtual-service.size.ts';

interface AttachedRoute extends LimitShare {
  readonly config: Config<RouteObject>;
  /** In units of `unitBytes`, for all matches with their filters, backends and hosts. */
  cost: number;
  matches: number;
}

/** Requests of `closed` routes get a 503 response; those of `detached` routes match other routes. */
export type Attachment = 'attached' | 'closed' | 'detached';

export class AttachmentBudget {
  readonly #routesByShare = new Map<string, Map<Config<RouteObject>, AttachedRoute>>();

  /** @param hosts for which the route is translated at this parent */
  add(route: Config<RouteObject>, parentNamespace: string | undefined, hosts: number): void {
    const name = shareOf(route, parentNamespace);
    const share = this.#routesByShare.get(name) ?? new Map<Config<RouteObject>, AttachedRoute>();
    this.#routesByShare.set(name, share);
    const { units, matches } = sizeOf(route);
    const routeCost = share.get(route) ?? { config: route, cost: 0, matches: 0 };
    share.set(route, routeCost);
    routeCost.cost += hosts * units;
    routeCost.matches += hosts * matches;
  }

  /** Determines the routes that exceed the limit. Call it after adding all routes. */
  apply(): RoutesBeyondLimit {
    const limitedRoutes = new Map<string, ReadonlyMap<Config<RouteObject>, LimitedRoute>>();
    for (const [name, share] of this.#routesByShare) {
      const excessRoutes = itemsBeyondLimit(share.values(), maxAttachedMatches);
      const matchShares = excessRoutes.map(({ config, matches }) => ({ config, cost: matches }));
      const detachedRoutes = new Set(itemsBeyondLimit(matchShares, maxAttachedMatches).map(({ config }) => config));
      if (excessRoutes.length === 0) continue;
      const attachmentOf = (config: Config<RouteObject>) => (detachedRoutes.has(config) ? 'detached' : 'closed');
      limitedRoutes.set(
        name,
        new Map(excessRoutes.map(({ config, cost }) => [config, { cost, attachment: attachmentOf(config) }])),
      );
    }
    return new RoutesBeyondLimit(limitedRoutes);
  }
}

interface LimitedRoute {
  readonly cost: number;
  readonly attachment: Exclude<Attachment, 'attached'>;
}

export class RoutesBeyondLimit {
  readonly #limitedRoutes: ReadonlyMap<string, ReadonlyMap<Config<RouteObject>, LimitedRoute>>;

  constructor(limitedRoutes: ReadonlyMap<string, ReadonlyMap<Config<RouteObject>, LimitedRoute>>) {
    this.#limitedRoutes = limitedRoutes;
  }

  get size(): number {
    return new Set([...this.#limitedRoutes.values()].flatMap((routes) => [...routes.keys()])).size;
  }

  attachmentOf(route: Config<RouteObject>, parentNamespace: string | undefined): Attachment {
    return this.#limitedRouteOf(route, parentNamespace)?.attachment ?? 'attached';
  }

  /** Depends only on the route, so that changes of other routes do not report the same problem again. */
  messageFor(route: Config<RouteObject>, parentNamespace: string | undefined): string | undefined {
    const limitedRoute = this.#limitedRouteOf(route, parentNamespace);
    if (limitedRoute === undefined) return undefined;
    const parents = parentNamespace === undefined ? 'Services' : `Gateways of namespace ${parentNamespace}`;
    const effect =
      limitedRoute.attachment === 'closed'
        ? 'requests for the route get 503'
        : 'the route is not attached, and its requests go to other routes';
    return (
      `${effect}: it has ${limitedRoute.cost} translated matches (matches x hosts x listeners, each counted once for each kB), and the limit for all ` +
      `routes of namespace ${route.namespace} at ${parents} is ${maxAttachedMatches} (LIMIT_EXCEEDED): ` +
      'reduce matches, hostnames or headers, or select a listener with sectionName'
    );
  }

  #limitedRouteOf(route: Config<RouteObject>, parentNamespace: string | undefined): LimitedRoute | undefined {
    return this.#limitedRoutes.get(shareOf(route, parentNamespace))?.get(route);
  }
}

/**
 * Key of a limit: one per namespace of Gateways, because their owner adds listeners, and one for all Services.
 * @param parentNamespace of a Gateway; `undefined` for Services
 */
function shareOf({ namespace }: Config, parentNamespace: string | undefined): string {
  return parentNamespace === undefined ? namespace : `${namespace}/${parentNamespace}`;
}

interface Size {
  readonly units: number;
  readonly matches: number;
}

const sizes = new WeakMap<Config<RouteObject>, Size>();

function sizeOf(route: Config<RouteObject>): Size {
  const cachedSize = sizes.get(route);
  if (cachedSize !== undefined) return cachedSize;
  const { rules } = route.spec;
  const size = {
    units: rules.reduce((sum, { matches, ...rule }) => sum + routeUnits({ ...rule, match: matches }), 0),
    matches: rules.reduce((sum, { matches }) => sum + Math.max(matches.length, 1), 0),
  };
  sizes.set(route, size);
  return size;
}
