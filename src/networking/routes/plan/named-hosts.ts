/** Virtual hosts of one service: its own, and those of names that have routes of their own. */
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { Service } from '../../../model/services/service.ts';
import { namedBy, virtualServiceOver } from '../../traffic/alias.ts';
import type { Reach } from '../../traffic/reach.ts';
import type { ServiceGroup } from './service-groups.ts';
import {
  type MadeVirtualHost,
  makeVirtualHost,
  type RouteSelection,
  type Surroundings,
  type Wanted,
} from './sidecar-virtual-hosts.ts';
import type { ByHost } from './virtual-services-by-host.ts';

export function wantedOf(
  group: ServiceGroup,
  { listenerPort }: RouteSelection,
  over: ResolvedVirtualService | undefined,
  aliasServices: readonly Service[],
): Wanted {
  const { service, port } = group;
  return {
    hostname: service.hostname,
    group,
    port: port.number,
    listenerPort: listenerPort || port.number,
    servicePort: port,
    aliasServices,
    over,
  };
}

/** The service's own virtual host has the names that lead to the same; each of the others has one of its own. */
export function ofGroupWithNames(
  group: ServiceGroup,
  over: ResolvedVirtualService | undefined,
  aliases: readonly Service[],
  byHost: ByHost,
  around: Surroundings,
): readonly MadeVirtualHost[] {
  const names = aliases.map((alias) => nameOf(alias, over, byHost, around.reach));
  const same = names.filter(({ isOwn }) => !isOwn).map(({ alias }) => alias);
  const wanted = wantedOf(group, around.selection, over, same);
  const own = names.filter(({ isOwn }) => isOwn);
  return [
    makeVirtualHost(wanted, around),
    ...own.map(({ alias, over }) =>
      makeVirtualHost({ ...wanted, hostname: alias.hostname, aliasServices: [], alias, over }, around),
    ),
  ];
}

/** What requests to another name of a service are routed by, and whether that is something else than by the service's own. */
function nameOf(alias: Service, ofService: ResolvedVirtualService | undefined, byHost: ByHost, reach: Reach) {
  const { chain, service, clustered } = namedBy(alias.hostname, reach);
  const over = virtualServiceOver(chain, byHost);
  return { alias, over, isOwn: over !== ofService || (over === undefined && clustered !== service) };
}
