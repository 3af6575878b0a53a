/**
 * Limits what the routes of one namespace attach to Gateways and Services. Each match is translated for each host of each listener that
 * the route attaches to: 500 routes of 128 matches at a Gateway with 64 listeners would become four million routes, which exhaust the
 * memory of the control plane at every start. Beyond the limit the oldest routes stay attached. Which ones depends on the objects alone,
 * not on their order of arrival.
 */
import { byAge, type Config } from '../../config/config.ts';
import type { RouteObject } from '../../kinds/gateway-api/http-route.ts';
import { maxAttachedMatches } from '../../kinds/object-limits.ts';

/** What a route attaches to the parents of one share. */
interface Attached {
  readonly route: Config<RouteObject>;
  cost: number;
}

export class AttachmentBudget {
  /** Routes of each namespace by the parents that they attach to. */
  readonly #shares = new Map<string, Map<Config<RouteObject>, Attached>>();

  /** @param hosts for which the route is translated at this parent */
  add(route: Config<RouteObject>, parentNamespace: string | undefined, hosts: number): void {
    const name = shareOf(route, parentNamespace);
    const share = this.#shares.get(name) ?? new Map<Config<RouteObject>, Attached>();
    this.#shares.set(name, share);
    const cost = hosts * matchCount(route);
    const known = share.get(route);
    if (known === undefined) share.set(route, { route, cost });
    else known.cost += cost;
  }

  /** Decides which routes are beyond the limit. Call it after all routes are added. */
  apply(): RoutesBeyondLimit {
    const costs = new Map<string, ReadonlyMap<Config<RouteObject>, number>>();
    for (const [name, share] of this.#shares) {
      const beyond = new Map<Config<RouteObject>, number>();
      let sum = 0;
      for (const { route, cost } of [...share.values()].sort((a, b) => byAge(a.route, b.route))) {
        // A small route is kept after a large one was left out: the large one alone is the cause.
        if (sum + cost > maxAttachedMatches) beyond.set(route, cost);
        else sum += cost;
      }
      if (beyond.size > 0) costs.set(name, beyond);
    }
    return new RoutesBeyondLimit(costs);
  }
}

export class RoutesBeyondLimit {
  /** Translated matches of the routes beyond the limit. */
  readonly #costs: ReadonlyMap<string, ReadonlyMap<Config<RouteObject>, number>>;

  constructor(costs: ReadonlyMap<string, ReadonlyMap<Config<RouteObject>, number>>) {
    this.#costs = costs;
  }

  /** Routes that are not attached to at least one of their parents. */
  get size(): number {
    return new Set([...this.#costs.values()].flatMap((costs) => [...costs.keys()])).size;
  }

  has(route: Config<RouteObject>, parentNamespace: string | undefined): boolean {
    return this.#costs.get(shareOf(route, parentNamespace))?.has(route) ?? false;
  }

  /**
   * Why the route is not attached. The text depends on the route alone, so that a change of another route does not report it again.
   *
   * @returns `undefined` if it is attached
   */
  messageFor(route: Config<RouteObject>, parentNamespace: string | undefined): string | undefined {
    const cost = this.#costs.get(shareOf(route, parentNamespace))?.get(route);
    if (cost === undefined) return undefined;
    const parents = parentNamespace === undefined ? 'Services' : `Gateways of namespace ${parentNamespace}`;
    return (
      `the route is not attached: it has ${cost} translated matches (matches x hosts x listeners), and with older routes of namespace ` +
      `${route.namespace} at ${parents} more than ${maxAttachedMatches} (LIMIT_EXCEEDED): ` +
      'use fewer matches or hostnames, or name a listener with sectionName'
    );
  }
}

/**
 * Gateways of each namespace have a share of their own: their owner, who adds listeners, must not use up what routes may attach elsewhere.
 * All Services share one: a route may name Services of any namespace.
 *
 * @param parentNamespace of a Gateway; `undefined` for Services
 */
function shareOf({ namespace }: Config, parentNamespace: string | undefined): string {
  return parentNamespace === undefined ? namespace : `${namespace}/${parentNamespace}`;
}

function matchCount({ spec: { rules } }: Config<RouteObject>): number {
  return rules.reduce((sum, { matches }) => sum + Math.max(matches.length, 1), 0);
}
