/**
 * Resolves aliases of a service (ExternalName services). A DestinationRule for an alias creates separate clusters with the service's endpoints, so
 * that it affects only clients that use the alias.
 */
import { isWildcard, mostSpecificKey } from '../../model/fields/hostname.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { EgressListenerScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';
import { aliasChain, aliasesByTarget, isAlias } from '../../model/services/service-alias.ts';
import type { ProxyReach } from './reach.ts';

/** Rules for wildcards apply to the target of the alias instead. */
function ruleNaming(service: Service, reach: ProxyReach): MergedDestinationRule | undefined {
  if (!isAlias(service)) return undefined;
  const rule = reach.destinationRuleFor(service);
  return rule?.config.spec.host === service.hostname ? rule : undefined;
}

/** An alias has its own clusters if a DestinationRule or BackendTLSPolicy names it. */
export function hasOwnClusters(service: Service, reach: ProxyReach): boolean {
  return isAlias(service) && (ruleNaming(service, reach) !== undefined || reach.hasBackendTls(service));
}

export function ruleOfAlias(alias: Service, service: Service, reach: ProxyReach): MergedDestinationRule | undefined {
  return ruleNaming(alias, reach) ?? reach.destinationRuleFor(service);
}

export interface AliasResolution {
  /** Services from the name to its target; empty for an unknown name. */
  readonly chain: readonly Service[];
  readonly service: Service | undefined;
  /** The first service of the chain with its own clusters. */
  readonly clusteredService: Service | undefined;
}

export function resolveAlias(hostname: string, reach: ProxyReach): AliasResolution {
  const firstService = reach.serviceByHostname(hostname);
  if (firstService === undefined) return { chain: [], service: undefined, clusteredService: undefined };
  if (!isAlias(firstService)) return { chain: [firstService], service: firstService, clusteredService: firstService };
  const chain = aliasChain(firstService, (host) => reach.serviceByHostname(host));
  const lastService = chain.at(-1)!;
  if (isAlias(lastService)) return { chain, service: undefined, clusteredService: undefined };
  return {
    chain,
    service: lastService,
    clusteredService: chain.find(
      (chainedService) => chainedService === lastService || hasOwnClusters(chainedService, reach),
    ),
  };
}

type AliasesByTarget = ReadonlyMap<string, readonly Service[]>;
/** Push contexts share both lists until they change. */
const aliasesOfServices = new WeakMap<readonly Service[], WeakMap<readonly Service[], AliasesByTarget>>();

export function aliasesOf(
  { services }: Pick<EgressListenerScope, 'services'>,
  reach: Pick<ProxyReach, 'services' | 'serviceByHostname'>,
): AliasesByTarget {
  const aliasesByReach = aliasesOfServices.get(services) ?? new WeakMap<readonly Service[], AliasesByTarget>();
  aliasesOfServices.set(services, aliasesByReach);
  let aliasesByTargetHost = aliasesByReach.get(reach.services);
  if (aliasesByTargetHost === undefined) {
    aliasesByTargetHost = aliasesByTarget(services, (host) => reach.serviceByHostname(host));
    aliasesByReach.set(reach.services, aliasesByTargetHost);
  }
  return aliasesByTargetHost;
}

/**
 * Returns the VirtualService for requests to a name. VirtualServices for the name come first, then those for later services of the chain, then those
 * for wildcards that cover the name.
 */
export function virtualServiceOfAlias(
  chain: readonly Service[],
  virtualServicesByHost: ReadonlyMap<string, ResolvedVirtualService>,
): ResolvedVirtualService | undefined {
  const matchingHosts = chain
    .map(({ hostname }) => mostSpecificKey(hostname, virtualServicesByHost))
    .filter((host) => host !== undefined);
  const host = matchingHosts.find((matchingHost) => !isWildcard(matchingHost)) ?? matchingHosts[0];
  return host === undefined ? undefined : virtualServicesByHost.get(host);
}
