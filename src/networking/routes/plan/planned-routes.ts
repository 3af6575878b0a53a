/** A plan of virtual hosts: what was translated, and which virtual host has which domain. */
import { onceForPair } from '../../../model/collections/once-for.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { RuleRevision } from '../../../model/push-context/rule-revision.ts';
import type { Service } from '../../../model/services/service.ts';
import type { PartBlock } from '../../messages/part-block.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { MadeVirtualHost } from './sidecar-virtual-hosts.ts';
import type { VirtualHostPart } from './virtual-host-part.ts';

export interface RoutePlan {
  /** Blocks of virtual hosts sorted by name: the very same list for the same virtual hosts. */
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  /** What all parts are made from. */
  readonly routesDependOn: () => readonly ConfigKey[];
  /** One of the virtual hosts takes whatever no other does. */
  readonly takesAll: boolean;
  /** Nothing: whoever looks it up brings all that it depends on, and a new one comes in its place. */
  readonly dependsOn: readonly ConfigKey[];
  readonly made: Made;
  readonly claimed: Claimed;
}

/** What was made, and from what. */
export interface Made {
  readonly groups: readonly ServiceGroup[];
  /** Virtual hosts of each group; several where names of it have routes of their own. */
  readonly ofGroups: readonly (MadeVirtualHost | readonly MadeVirtualHost[])[];
  /** Virtual hosts of names that no service has. */
  readonly ofUnknown: ReadonlyMap<string, MadeVirtualHost>;
  /** All of them, in the order in which they claim domains: the first to want one has it. */
  readonly hosts: readonly MadeVirtualHost[];
  /** Places in {@link groups} of those of which services are another name: what they have is a list in {@link ofGroups}. */
  readonly named: readonly number[];
  readonly over: readonly (ResolvedVirtualService | undefined)[];
  readonly services: readonly Service[];
  readonly rules: RuleRevision;
  /** Places in {@link hosts} of those that are others than in the plan before; undefined: any may be. */
  readonly changed: readonly number[] | undefined;
}

/** Which virtual host has which domains. */
export interface Claimed {
  /** Virtual hosts with the domains that were left for them; undefined for those that got none. */
  readonly parts: readonly (VirtualHostPart | undefined)[];
  /** Place of each part when all are sorted by name. */
  readonly sorted: Int32Array;
  readonly blocks: readonly PartBlock<VirtualHostPart>[];
  readonly takesAll: boolean;
  /** No two hosts want one domain. */
  readonly allHaveTheirs: boolean;
}

/** Number of `virtual_hosts` in a RouteConfiguration. */
export const virtualHostsField = 2;

/** Places in which the lists have others, found once for all who come from the one to the other. */
export const differingPlaces = onceForPair((before: readonly unknown[], now: readonly unknown[]): readonly number[] =>
  now.flatMap((one, place) => (one === before[place] ? [] : [place])),
);
