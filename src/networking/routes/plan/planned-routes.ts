/** A plan: virtual hosts of a route configuration, with their domains. */
import { memoizeByPair } from '../../../model/collections/memoize-by-object.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { RuleRevision } from '../../../model/push-context/rule-revision.ts';
import type { Service } from '../../../model/services/service.ts';
import type { PartBlock } from '../../messages/part-block.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { CachedVirtualHost } from './sidecar-virtual-hosts.ts';
import type { VirtualHostPart } from './virtual-host-part.ts';

export interface RoutePlan {
  /** Blocks of virtual hosts, sorted by name. Equal lists are the same object. */
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  readonly routeDependencies: () => readonly ConfigKey[];
  readonly hasCatchAll: boolean;
  /** Empty, because the cache key and the inputs contain all dependencies. */
  readonly dependsOn: readonly ConfigKey[];
  readonly plannedHosts: PlannedHosts;
  readonly domainAssignment: DomainAssignment;
}

export interface PlannedHosts {
  readonly groups: readonly ServiceGroup[];
  /** Virtual hosts by group index; a list if aliases have their own routes. */
  readonly hostsByGroup: readonly (CachedVirtualHost | readonly CachedVirtualHost[])[];
  readonly hostsByUnknownName: ReadonlyMap<string, CachedVirtualHost>;
  /** All virtual hosts, in order of precedence for domains. */
  readonly hosts: readonly CachedVirtualHost[];
  readonly aliasedPlaces: readonly number[];
  readonly virtualServices: readonly (ResolvedVirtualService | undefined)[];
  readonly services: readonly Service[];
  readonly destinationRuleRevision: RuleRevision;
  /** Indexes in {@link hosts} that differ from the previous plan; `undefined` if all may. */
  readonly changedPlaces: readonly number[] | undefined;
}

export interface DomainAssignment {
  /** Virtual hosts with domains; `undefined` for a host without any domain. */
  readonly parts: readonly (VirtualHostPart | undefined)[];
  /** Positions of the parts when sorted by name. */
  readonly sortedPlaces: Int32Array;
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  readonly hasCatchAll: boolean;
  readonly isConflictFree: boolean;
}

export const virtualHostsField = 2;

export const differingIndexes = memoizeByPair(
  (previous: readonly unknown[], current: readonly unknown[]): readonly number[] =>
    current.flatMap((item, index) => (item === previous[index] ? [] : [index])),
);
