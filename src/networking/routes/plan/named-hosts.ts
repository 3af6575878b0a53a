/** Virtual hosts of services with aliases (ExternalName services). */
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { Service } from '../../../model/services/service.ts';
import { resolveAlias, virtualServiceOfAlias } from '../../traffic/alias.ts';
import type { ProxyReach } from '../../traffic/reach.ts';
import type { ServiceGroup } from './service-groups.ts';
import {
  buildVirtualHost,
  type CachedVirtualHost,
  type PlanContext,
  type RouteSelection,
  type VirtualHostSpec,
} from './sidecar-virtual-hosts.ts';
import type { VirtualServicesByHost } from './virtual-services-by-host.ts';

export function virtualHostSpecOf(
  group: ServiceGroup,
  { listenerPort }: RouteSelection,
  virtualService: ResolvedVirtualService | undefined,
  aliasServices: readonly Service[],
): VirtualHostSpec {
  const { service, port } = group;
  return {
    hostname: service.hostname,
    group,
    port: port.number,
    listenerPort: listenerPort || port.number,
    servicePort: port,
    aliasServices,
    virtualService,
  };
}

/** Adds the names of an alias with equal routes to the service's virtual host. Other aliases get their own virtual hosts. */
export function hostsOfAliasedGroup(
  group: ServiceGroup,
  virtualService: ResolvedVirtualService | undefined,
  aliases: readonly Service[],
  virtualServicesByHost: VirtualServicesByHost,
  context: PlanContext,
): readonly CachedVirtualHost[] {
  const routings = aliases.map((alias) => routingOfAlias(alias, virtualService, virtualServicesByHost, context.reach));
  const aliasNames = routings.filter(({ isOwn }) => !isOwn).map(({ alias }) => alias);
  const spec = virtualHostSpecOf(group, context.selection, virtualService, aliasNames);
  const ownRoutings = routings.filter(({ isOwn }) => isOwn);
  return [
    buildVirtualHost(spec, context),
    ...ownRoutings.map(({ alias, virtualService }) =>
      buildVirtualHost(
        { ...spec, hostname: alias.hostname, aliasServices: [], aliasService: alias, virtualService },
        context,
      ),
    ),
  ];
}

function routingOfAlias(
  alias: Service,
  serviceVirtualService: ResolvedVirtualService | undefined,
  virtualServicesByHost: VirtualServicesByHost,
  reach: ProxyReach,
) {
  const { chain, service, clusteredService } = resolveAlias(alias.hostname, reach);
  const virtualService = virtualServiceOfAlias(chain, virtualServicesByHost);
  return {
    alias,
    virtualService,
    isOwn: virtualService !== serviceVirtualService || (virtualService === undefined && clusteredService !== service),
  };
}
