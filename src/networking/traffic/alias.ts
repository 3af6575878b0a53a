/**
 * What is written for another name of a service (an ExternalName service): its own destination rule gives the name clusters of
 * its own, with the endpoints of what it stands for, so that the rule holds for who asks by that name, and for nobody else.
 */
import { isWildcard, mostSpecific } from '../../model/fields/hostname.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { EgressListenerScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';
import { aliasesByTarget, chainBehind, isAlias } from '../../model/services/service-alias.ts';
import type { Reach } from './reach.ts';

/** The rule that names an alias; rules for wildcards are for what it stands for. */
function ownRuleOf(service: Service, reach: Reach): MergedDestinationRule | undefined {
  if (!isAlias(service)) return undefined;
  const rule = reach.destinationRuleFor(service);
  return rule?.config.spec.host === service.hostname ? rule : undefined;
}

/** Whether an alias has clusters of its own: of its own destination rule, or of a BackendTLSPolicy for it. */
export function hasOwnClusters(service: Service, reach: Reach): boolean {
  return isAlias(service) && (ownRuleOf(service, reach) !== undefined || reach.hasBackendTls(service));
}

/** The rule for an alias's clusters: its own one, or that of what it stands for. */
export function ruleOfAlias(alias: Service, service: Service, reach: Reach): MergedDestinationRule | undefined {
  return ownRuleOf(alias, reach) ?? reach.destinationRuleFor(service);
}

/** A name as it leads to a service in the end. */
export interface Named {
  /** Step by step; empty when nobody knows the name. */
  readonly chain: readonly Service[];
  /** Undefined when it leads to none. */
  readonly service: Service | undefined;
  /** The first of the steps that has clusters of its own: an alias with a rule or policy, or else the service. */
  readonly clustered: Service | undefined;
}

export function namedBy(hostname: string, reach: Reach): Named {
  const first = reach.serviceByHostname(hostname);
  if (first === undefined) return { chain: [], service: undefined, clustered: undefined };
  if (!isAlias(first)) return { chain: [first], service: first, clustered: first };
  const chain = chainBehind(first, (host) => reach.serviceByHostname(host));
  const last = chain.at(-1)!;
  if (isAlias(last)) return { chain, service: undefined, clustered: undefined };
  return { chain, service: last, clustered: chain.find((one) => one === last || hasOwnClusters(one, reach)) };
}

type AliasesByTarget = ReadonlyMap<string, readonly Service[]>;
/** By the services of the listener, and those that names mean: contexts share both as long as they are the same. */
const aliasesOfServices = new WeakMap<readonly Service[], WeakMap<readonly Service[], AliasesByTarget>>();

/** Services of a listener that are another name for a service, by the host name of that. */
export function aliasesOf(
  { services }: Pick<EgressListenerScope, 'services'>,
  reach: Pick<Reach, 'services' | 'serviceByHostname'>,
): AliasesByTarget {
  const ofServices = aliasesOfServices.get(services) ?? new WeakMap<readonly Service[], AliasesByTarget>();
  aliasesOfServices.set(services, ofServices);
  let known = ofServices.get(reach.services);
  if (known === undefined) {
    known = aliasesByTarget(services, (host) => reach.serviceByHostname(host));
    ofServices.set(reach.services, known);
  }
  return known;
}

/**
 * The virtual service for requests to a name: the one that names it, or what it stands for, step by step; else the one whose
 * wildcard does.
 */
export function virtualServiceOver(
  chain: readonly Service[],
  byHost: ReadonlyMap<string, ResolvedVirtualService>,
): ResolvedVirtualService | undefined {
  const found = chain.map(({ hostname }) => mostSpecific(hostname, byHost)).filter((host) => host !== undefined);
  const host = found.find((one) => !isWildcard(one)) ?? found[0];
  return host === undefined ? undefined : byHost.get(host);
}
