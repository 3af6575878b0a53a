/**
 * Limits the routes that VirtualServices of one namespace get from delegates. Each route of a delegate is merged with each match of the
 * route that delegates to it, for each host: two objects of 300 kB would become 16 million routes. Beyond the limit the oldest objects
 * keep their delegates. A route of a younger one responds with 503 instead, so that its requests reach no later route.
 */
import { createHash } from 'node:crypto';
import { byAge, type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { maxDelegatedRoutes, maxHostRoutes } from '../../model/kinds/object-limits.ts';
import type { HttpRoute, VirtualService } from '../../model/kinds/virtual-service.ts';
import type { LimitedObject, LimitedObjects } from './export-budget.ts';

/** Response of a route whose delegate exceeds the limit. */
const unavailable = { status: 503 };

export class DelegateBudget {
  /** Matches of all routes of each delegate, by namespace/name. */
  readonly #delegates = new Map<string, number>();
  /** Objects that delegate, by namespace and key. */
  readonly #roots = new Map<string, Map<string, Config>>();

  /**
   * Idempotent, as `ExportBudget.limit`.
   *
   * @param keys of all objects that may differ from the last call
   * @param objectOf what the key stands for now
   * @param before result of the last call that took effect
   */
  limit(
    keys: Iterable<string>,
    objectOf: (key: string) => Config | undefined,
    before: ReadonlyMap<string, LimitedObject>,
  ): LimitedObjects {
    let touched = new Set<string>();
    let isOtherDelegate = false;
    for (const key of keys) {
      if (!key.startsWith('VirtualService/')) continue;
      const config = objectOf(key);
      if (this.#putDelegate(key, config)) isOtherDelegate = true;
      if (this.#putRoot(key, config)) touched.add(namespaceOf(key));
    }
    if (isOtherDelegate) touched = new Set([...touched, ...this.#roots.keys()]);
    const limited = new Map([...before].filter(([key]) => !touched.has(namespaceOf(key))));
    for (const namespace of touched) {
      const roots = this.#roots.get(namespace);
      if (roots === undefined) continue;
      for (const [config, routes] of this.#beyond(roots)) {
        const key = configKeyText(configKeyOf(config));
        const next = limitedObject(config, routes);
        const known = before.get(key);
        const isSame = known?.original === config && known.config.resourceVersion === next.config.resourceVersion;
        limited.set(key, isSame ? known : next);
      }
    }
    const changed = new Set<string>();
    for (const [key, { config }] of limited) if (before.get(key)?.config !== config) changed.add(key);
    for (const key of before.keys()) if (!limited.has(key)) changed.add(key);
    return { limited, changed };
  }

  /** @returns whether the delegate of this key differs */
  #putDelegate(key: string, config: Config | undefined): boolean {
    const id = key.slice(key.indexOf('/') + 1);
    const known = this.#delegates.get(id);
    const spec = config?.spec as VirtualService | undefined;
    const matches = spec === undefined || spec.hosts.length > 0 ? undefined : matchCount(spec.http ?? []);
    if (matches === undefined) this.#delegates.delete(id);
    else this.#delegates.set(id, matches);
    return known !== matches;
  }

  /** @returns whether the object of this key delegates, or did */
  #putRoot(key: string, config: Config | undefined): boolean {
    const namespace = namespaceOf(key);
    const roots = this.#roots.get(namespace) ?? new Map<string, Config>();
    const did = roots.delete(key);
    const spec = config?.spec as VirtualService | undefined;
    const does = spec !== undefined && spec.hosts.length > 0 && (spec.http ?? []).some(({ delegate }) => delegate);
    if (does) roots.set(key, config!);
    if (roots.size > 0) this.#roots.set(namespace, roots);
    else this.#roots.delete(namespace);
    return did || does;
  }

  /** Objects of a namespace with routes beyond the limit, and the places of these routes. */
  *#beyond(roots: ReadonlyMap<string, Config>): Generator<readonly [config: Config, routes: readonly number[]]> {
    // Delegates of other namespaces have their own share: their authors must not use up that of the namespace.
    const sums = { own: 0, foreign: 0 };
    for (const config of [...roots.values()].sort(byAge)) {
      const { hosts, http = [] } = config.spec as VirtualService;
      const sumsOfObject = { own: 0, foreign: 0 };
      const routes: number[] = [];
      for (const [index, { match = [], delegate }] of http.entries()) {
        if (delegate === undefined) continue;
        const namespace = delegate.namespace ?? config.namespace;
        const count = this.#delegates.get(`${namespace}/${delegate.name}`) ?? 0;
        const cost = hosts.length * Math.max(match.length, 1) * count;
        const share = namespace === config.namespace ? 'own' : 'foreign';
        if (sums[share] + cost > maxDelegatedRoutes || sumsOfObject[share] + cost > maxHostRoutes) routes.push(index);
        else {
          sums[share] += cost;
          sumsOfObject[share] += cost;
        }
      }
      if (routes.length > 0) yield [config, routes];
    }
  }
}

function namespaceOf(key: string): string {
  return key.split('/', 2)[1]!;
}

function matchCount(routes: readonly HttpRoute[]): number {
  return routes.reduce((sum, { match = [] }) => sum + Math.max(match.length, 1), 0);
}

function limitedObject(original: Config, routes: readonly number[]): LimitedObject {
  const { kind, namespace, name, resourceVersion, source } = original;
  const spec = original.spec as VirtualService;
  const beyond = new Set(routes);
  const http = (spec.http ?? []).map((route, index): HttpRoute => {
    if (!beyond.has(index)) return route;
    return {
      ...(route.name !== undefined && { name: route.name }),
      ...(route.match !== undefined && { match: route.match }),
      directResponse: unavailable,
    };
  });
  const version = createHash('sha256').update(routes.join()).digest('hex').slice(0, 12);
  return {
    original,
    config: Object.freeze({ ...original, spec: { ...spec, http }, resourceVersion: `${resourceVersion}-${version}` }),
    problem: {
      severity: 'error',
      place: source === undefined ? { source: 'k8s://' } : { file: source.file, line: source.line },
      object: `${kind} ${namespace}/${name}`,
      field: `spec.http[${routes[0]}].delegate`,
      message:
        `${routes.length} routes respond with 503: with their delegates the object has more than ${maxHostRoutes} routes ` +
        `(hosts x matches x matches of the delegate), or all objects of namespace ${namespace} have more than ` +
        `${maxDelegatedRoutes} (LIMIT_EXCEEDED): use fewer hosts, matches or delegates`,
    },
  };
}
