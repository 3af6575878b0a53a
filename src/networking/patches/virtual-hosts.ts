import {
  type Route,
  RouteSchema,
  type VirtualHost,
  VirtualHostSchema,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import type { ActivePatch } from './active-patch.ts';
import { applyPatches, mergeWithPatch } from './apply-patches.ts';
import { firstConditionKey } from './keyed-patches.ts';
import { PatchFailure, shallowCopy } from './merge-messages.ts';
import { isMerge, messageOfPatch } from './patch-set.ts';
import { attemptPatch } from './status.ts';

/** Returns `undefined` if a patch removes the host, and the same host if nothing changes. */
export function patchedHost(host: VirtualHost, activePatches: readonly ActivePatch[]): VirtualHost | undefined {
  const hostPatches = activePatches.filter(({ patch }) => patch.applyTo === 'VIRTUAL_HOST');
  const mergedHost = applyPatches(host, hostPatches, changedHost);
  if (mergedHost === undefined) return undefined;
  const routePatches = activePatches.filter(({ patch }) => patch.applyTo === 'HTTP_ROUTE');
  const routes = patchedRouteList(mergedHost.routes, routePatches);
  if (routes === mergedHost.routes) return mergedHost;
  const result: VirtualHost = shallowCopy(mergedHost);
  result.routes = [...routes];
  return withOrigins(result, originsOf(mergedHost));
}

function changedHost(host: VirtualHost, activePatch: ActivePatch): VirtualHost | undefined {
  if (activePatch.patch.operation === 'REMOVE') return undefined;
  if (isMerge(activePatch)) return mergeWithPatch(VirtualHostSchema, host, activePatch);
  return withOrigins(messageOfPatch(VirtualHostSchema, activePatch), [activePatch.origin]);
}

function patchedRouteList(routes: readonly Route[], activePatches: readonly ActivePatch[]): readonly Route[] {
  const changingPatches = activePatches.filter(
    (candidatePatch) => isMerge(candidatePatch) || candidatePatch.patch.operation === 'REMOVE',
  );
  const changedRoutes = routes.flatMap((route) => {
    const matchingPatches = changingPatches.filter((candidate) => matchesRouteOfPatch(candidate, route));
    return applyPatches(route, matchingPatches, changedRoute) ?? [];
  });
  const patchedRoutes = activePatches
    .filter((candidatePatch) => !changingPatches.includes(candidatePatch))
    .reduce<readonly Route[]>(withNewRoute, changedRoutes);
  return sameItems(patchedRoutes, routes) ? routes : patchedRoutes;
}

function changedRoute(route: Route, activePatch: ActivePatch): Route | undefined {
  return isMerge(activePatch) ? mergeWithPatch(RouteSchema, route, activePatch) : undefined;
}

function withNewRoute(routes: readonly Route[], activePatch: ActivePatch): readonly Route[] {
  const { operation } = activePatch.patch;
  const matchesRoute = activePatch.patch.match.routeConfiguration?.vhost?.route !== undefined;
  const routeIndex = matchesRoute ? routes.findIndex((route) => matchesRouteOfPatch(activePatch, route)) : -1;
  if (matchesRoute && routeIndex === -1 && operation !== 'ADD' && operation !== 'INSERT_FIRST') return routes;
  return attemptPatch(activePatch, routes, () => {
    const route = withOrigins(messageOfPatch(RouteSchema, activePatch), [activePatch.origin]);
    if (operation === 'INSERT_FIRST') return [route, ...routes];
    if (operation === 'INSERT_BEFORE') return routes.toSpliced(Math.max(routeIndex, 0), 0, route);
    return routes.toSpliced(operation === 'ADD' || routeIndex === -1 ? routes.length : routeIndex + 1, 0, route);
  });
}

/** Virtual host properties that patches match; available without decoding. */
export interface NamedHost {
  readonly name: string;
  readonly domains: readonly string[];
}

export function matchesHost({ patch }: ActivePatch, host: NamedHost): boolean {
  const { name, domainName } = patch.match.routeConfiguration?.vhost ?? {};
  if (name !== undefined && name !== '' && name !== host.name) return false;
  return domainName === undefined || domainName === '' || host.domains.includes(domainName);
}

export function matchedHostName({ patch }: ActivePatch): string | undefined {
  const { name, domainName } = patch.match.routeConfiguration?.vhost ?? {};
  return firstConditionKey({ vhost: name, domain: domainName });
}

export function* hostKeys({ name, domains }: NamedHost): Iterable<string> {
  yield `vhost ${name}`;
  for (const domain of domains) yield `domain ${domain}`;
}

const actions = { ROUTE: 'route', REDIRECT: 'redirect', DIRECT_RESPONSE: 'directResponse' } as const;

function matchesRouteOfPatch({ patch }: ActivePatch, route: Route): boolean {
  const { name, action = 'ANY' } = patch.match.routeConfiguration?.vhost?.route ?? {};
  if (name !== undefined && name !== '' && name !== route.name) return false;
  return action === 'ANY' || route.action.case === actions[action];
}

/** Returns new hosts for a configuration. Existing hosts have priority, because Envoy rejects duplicate names and domains. */
export function addedHosts(
  addedPatches: readonly ActivePatch[],
  existingHosts: readonly NamedHost[],
): readonly VirtualHost[] {
  if (addedPatches.length === 0) return [];
  const names = new UsedNames(existingHosts);
  const newHosts: VirtualHost[] = [];
  for (const addedPatch of addedPatches) {
    attemptPatch(addedPatch, undefined, () => {
      const host = withOrigins(messageOfPatch(VirtualHostSchema, addedPatch), [addedPatch.origin]);
      names.throwIfUsed(host);
      names.add(host);
      newHosts.push(host);
    });
  }
  return newHosts;
}

class UsedNames {
  readonly #hostsByName = new Map<string, NamedHost>();
  readonly #hostsByDomain = new Map<string, NamedHost>();

  constructor(hosts: readonly NamedHost[]) {
    for (const host of hosts) this.add(host);
  }

  add(host: NamedHost): void {
    if (!this.#hostsByName.has(host.name)) this.#hostsByName.set(host.name, host);
    for (const domain of host.domains) if (!this.#hostsByDomain.has(domain)) this.#hostsByDomain.set(domain, host);
  }

  delete(host: NamedHost): void {
    if (this.#hostsByName.get(host.name) === host) this.#hostsByName.delete(host.name);
    for (const domain of host.domains) if (this.#hostsByDomain.get(domain) === host) this.#hostsByDomain.delete(domain);
  }

  /** @throws PatchFailure if another host has the name or one of the domains */
  throwIfUsed(host: NamedHost): void {
    if (this.#hostsByName.has(host.name)) throw new PatchFailure(`virtual host ${host.name} already exists`);
    for (const domain of host.domains) {
      const existingHost = this.#hostsByDomain.get(domain);
      if (existingHost !== undefined) {
        throw new PatchFailure(`domain ${domain} is used by virtual host ${existingHost.name}`);
      }
    }
  }
}

export function hasSameNames(previous: NamedHost, next: NamedHost): boolean {
  return next.domains === previous.domains && next.name === previous.name;
}

export class UniqueHosts<Host extends NamedHost> {
  readonly #hosts: readonly Host[];
  readonly #patchedHosts = new Map<Host, Host | undefined>();
  /** Created when a patch changes a name or domain, which is rare. */
  #names: UsedNames | undefined;

  constructor(hosts: readonly Host[]) {
    this.#hosts = hosts;
  }

  applyChange(previous: Host, next: Host | undefined, activePatches: readonly ActivePatch[]): Host | undefined {
    const result = next === undefined ? undefined : this.#withoutConflicts(previous, next, activePatches);
    this.#patchedHosts.set(previous, result);
    this.#names?.delete(previous);
    if (result !== undefined) this.#names?.add(result);
    return result;
  }

  #withoutConflicts(previous: Host, next: Host, activePatches: readonly ActivePatch[]): Host {
    const lastPatch = activePatches.findLast(({ patch }) => patch.applyTo === 'VIRTUAL_HOST');
    if (lastPatch === undefined || hasSameNames(previous, next)) return next;
    this.#names ??= new UsedNames(
      this.#hosts.flatMap((host) => (this.#patchedHosts.has(host) ? (this.#patchedHosts.get(host) ?? []) : [host])),
    );
    const names = this.#names;
    names.delete(previous);
    return attemptPatch(lastPatch, previous, () => {
      names.throwIfUsed(next);
      return next;
    });
  }
}
