/** Patches of virtual hosts, and of the routes in them (spec/discovery.md §8.9). */

import {
  type Route,
  RouteSchema,
  type VirtualHost,
  VirtualHostSchema,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import type { HeldPatch } from './held-patch.ts';
import { inTurn, mergedWith } from './in-turn.ts';
import { keyOfFirst } from './keyed-patches.ts';
import { PatchFailure, shallowCopy } from './merge-messages.ts';
import { isMerge, valueAs } from './patch-set.ts';
import { attempt } from './status.ts';

/** The very same host when nothing in it is another; undefined for one that is removed. @param held patches that it meets */
export function patchedHost(host: VirtualHost, held: readonly HeldPatch[]): VirtualHost | undefined {
  const ofHost = held.filter(({ patch }) => patch.applyTo === 'VIRTUAL_HOST');
  const whole = inTurn(host, ofHost, changedHost);
  if (whole === undefined) return undefined;
  const ofRoutes = held.filter(({ patch }) => patch.applyTo === 'HTTP_ROUTE');
  const routes = patchedRouteList(whole.routes, ofRoutes);
  if (routes === whole.routes) return whole;
  const result: VirtualHost = shallowCopy(whole);
  result.routes = [...routes];
  return withOrigins(result, originsOf(whole));
}

function changedHost(host: VirtualHost, held: HeldPatch): VirtualHost | undefined {
  if (held.patch.operation === 'REMOVE') return undefined;
  if (isMerge(held)) return mergedWith(VirtualHostSchema, host, held);
  return withOrigins(valueAs(VirtualHostSchema, held), [held.origin]);
}

/** What there is, is changed first; then come new ones. */
function patchedRouteList(routes: readonly Route[], held: readonly HeldPatch[]): readonly Route[] {
  const changing = held.filter((one) => isMerge(one) || one.patch.operation === 'REMOVE');
  const changed = routes.flatMap((route) => {
    const met = changing.filter((candidate) => isRouteMet(candidate, route));
    return inTurn(route, met, changedRoute) ?? [];
  });
  const all = held.filter((one) => !changing.includes(one)).reduce<readonly Route[]>(withNewRoute, changed);
  return sameItems(all, routes) ? routes : all;
}

function changedRoute(route: Route, held: HeldPatch): Route | undefined {
  return isMerge(held) ? mergedWith(RouteSchema, route, held) : undefined;
}

/** Before or after the first that the patch looks for; one that looks for a route which is not there adds none. */
function withNewRoute(routes: readonly Route[], held: HeldPatch): readonly Route[] {
  const { operation } = held.patch;
  const looks = held.patch.match.routeConfiguration?.vhost?.route !== undefined;
  const at = looks ? routes.findIndex((route) => isRouteMet(held, route)) : -1;
  if (looks && at === -1 && operation !== 'ADD' && operation !== 'INSERT_FIRST') return routes;
  return attempt(held, routes, () => {
    const route = withOrigins(valueAs(RouteSchema, held), [held.origin]);
    if (operation === 'INSERT_FIRST') return [route, ...routes];
    if (operation === 'INSERT_BEFORE') return routes.toSpliced(Math.max(at, 0), 0, route);
    return routes.toSpliced(operation === 'ADD' || at === -1 ? routes.length : at + 1, 0, route);
  });
}

/** What is to be known of a virtual host to tell whether a patch is for it: so it need not be decoded. */
export interface NamedHost {
  readonly name: string;
  readonly domains: readonly string[];
}

export function isHostMet({ patch }: HeldPatch, host: NamedHost): boolean {
  const { name, domainName } = patch.match.routeConfiguration?.vhost ?? {};
  if (name !== undefined && name !== '' && name !== host.name) return false;
  return domainName === undefined || domainName === '' || host.domains.includes(domainName);
}

/** The key of the host that a patch looks for, as {@link hostKeys} has them. */
export function wantedHost({ patch }: HeldPatch): string | undefined {
  const { name, domainName } = patch.match.routeConfiguration?.vhost ?? {};
  return keyOfFirst({ vhost: name, domain: domainName });
}

export function* hostKeys({ name, domains }: NamedHost): Iterable<string> {
  yield `vhost ${name}`;
  for (const domain of domains) yield `domain ${domain}`;
}

const actions = { ROUTE: 'route', REDIRECT: 'redirect', DIRECT_RESPONSE: 'directResponse' } as const;

function isRouteMet({ patch }: HeldPatch, route: Route): boolean {
  const { name, action = 'ANY' } = patch.match.routeConfiguration?.vhost?.route ?? {};
  if (name !== undefined && name !== '' && name !== route.name) return false;
  return action === 'ANY' || route.action.case === actions[action];
}

/** New hosts for a configuration. Envoy refuses two of one name or with one domain: the first stays. */
export function addedHosts(additions: readonly HeldPatch[], present: readonly NamedHost[]): readonly VirtualHost[] {
  if (additions.length === 0) return [];
  const names = new TakenNames(present);
  const added: VirtualHost[] = [];
  for (const one of additions) {
    attempt(one, undefined, () => {
      const host = withOrigins(valueAs(VirtualHostSchema, one), [one.origin]);
      names.refuseTaken(host);
      names.add(host);
      added.push(host);
    });
  }
  return added;
}

/** Which virtual host has which name and which domain. */
class TakenNames {
  readonly #byName = new Map<string, NamedHost>();
  readonly #byDomain = new Map<string, NamedHost>();

  constructor(hosts: readonly NamedHost[]) {
    for (const host of hosts) this.add(host);
  }

  add(host: NamedHost): void {
    if (!this.#byName.has(host.name)) this.#byName.set(host.name, host);
    for (const domain of host.domains) if (!this.#byDomain.has(domain)) this.#byDomain.set(domain, host);
  }

  delete(host: NamedHost): void {
    if (this.#byName.get(host.name) === host) this.#byName.delete(host.name);
    for (const domain of host.domains) if (this.#byDomain.get(domain) === host) this.#byDomain.delete(domain);
  }

  /** @throws PatchFailure when another one has the host's name, or a domain of it. */
  refuseTaken(host: NamedHost): void {
    if (this.#byName.has(host.name)) throw new PatchFailure(`virtual host ${host.name} already exists`);
    for (const domain of host.domains) {
      const other = this.#byDomain.get(domain);
      if (other !== undefined) {
        throw new PatchFailure(`domain ${domain} is used by virtual host ${other.name}`);
      }
    }
  }
}

/** Whether it has the same name, and the very same domains. */
export function isCalledAs(before: NamedHost, after: NamedHost): boolean {
  return after.domains === before.domains && after.name === before.name;
}

/** Watches that no two hosts of a configuration come to have one name or one domain by being patched. */
export class UniqueHosts<Host extends NamedHost> {
  readonly #hosts: readonly Host[];
  /** What has become of those that were patched. */
  readonly #patched = new Map<Host, Host | undefined>();
  /** Made when a host is called otherwise: hardly a patch does that. */
  #names: TakenNames | undefined;

  constructor(hosts: readonly Host[]) {
    this.#hosts = hosts;
  }

  /** @returns the host as it is after the patches, or as it was before when it would be in the way of another. */
  changed(before: Host, after: Host | undefined, held: readonly HeldPatch[]): Host | undefined {
    const result = after === undefined ? undefined : this.#fitting(before, after, held);
    this.#patched.set(before, result);
    this.#names?.delete(before);
    if (result !== undefined) this.#names?.add(result);
    return result;
  }

  #fitting(before: Host, after: Host, held: readonly HeldPatch[]): Host {
    const last = held.findLast(({ patch }) => patch.applyTo === 'VIRTUAL_HOST');
    if (last === undefined || isCalledAs(before, after)) return after;
    this.#names ??= new TakenNames(
      this.#hosts.flatMap((host) => (this.#patched.has(host) ? (this.#patched.get(host) ?? []) : [host])),
    );
    const names = this.#names;
    names.delete(before);
    return attempt(last, before, () => {
      names.refuseTaken(after);
      return after;
    });
  }
}
