/** A plan: the virtual hosts of a route configuration, and the domains assigned to each. */
import { onceForPair } from '../../../model/collections/once-for.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { RuleRevision } from '../../../model/push-context/rule-revision.ts';
import type { Service } from '../../../model/services/service.ts';
import type { PartBlock } from '../../messages/part-block.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { CachedVirtualHost } from './sidecar-virtual-hosts.ts';
import type { VirtualHostPart } from './virtual-host-part.ts';

export interface RoutePlan {
  /** Blocks of virtual hosts sorted by name. The same list object for the same virtual hosts. */
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  readonly routeDependencies: () => readonly ConfigKey[];
  /** A virtual host has the domain `*`. */
  readonly hasCatchAll: boolean;
  /** Always empty: the cache key and inputs cover everything that a plan depends on. */
  readonly dependsOn: readonly ConfigKey[];
  readonly planned: PlannedHosts;
  readonly domainAssignment: DomainAssignment;
}

/** Virtual hosts before domains are assigned, and what they were built from. */
export interface PlannedHosts {
  readonly groups: readonly ServiceGroup[];
  /** Virtual hosts of each group, a list if aliases have routes of their own. */
  readonly hostsByGroup: readonly (CachedVirtualHost | readonly CachedVirtualHost[])[];
  /** Virtual hosts of names that belong to no service. */
  readonly hostsByUnknownName: ReadonlyMap<string, CachedVirtualHost>;
  /** All virtual hosts, in the order in which they get domains. */
  readonly hosts: readonly CachedVirtualHost[];
  /** Places in {@link groups} of services that have aliases. Their entries in {@link hostsByGroup} are lists. */
  readonly aliasedPlaces: readonly number[];
  readonly virtualServices: readonly (ResolvedVirtualService | undefined)[];
  readonly services: readonly Service[];
  readonly rules: RuleRevision;
  /** Places in {@link hosts} that differ from the previous plan. `undefined` if any may. */
  readonly changedPlaces: readonly number[] | undefined;
}

export interface DomainAssignment {
  /** Virtual hosts with the domains that they got, `undefined` for a host that got none. */
  readonly parts: readonly (VirtualHostPart | undefined)[];
  /** For each part its place in the order of names. */
  readonly sortedPlaces: Int32Array;
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  readonly hasCatchAll: boolean;
  /** No two hosts request the same domain. */
  readonly isConflictFree: boolean;
}

/** Field number of `virtual_hosts` in `RouteConfiguration`. */
export const virtualHostsField = 2;

/** Places at which two lists differ, computed once for each pair of lists. */
export const differingPlaces = onceForPair(
  (previous: readonly unknown[], current: readonly unknown[]): readonly number[] =>
    current.flatMap((item, place) => (item === previous[place] ? [] : [place])),
);
