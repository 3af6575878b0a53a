import type { Config, ConfigKey, Origin } from '../config/config.ts';
import type { DestinationRule } from '../kinds/destinations/destination-rule.ts';
import type { VirtualService } from '../kinds/virtual-service/virtual-service.ts';

/**
 * A virtual service for generators. Hosts are fully qualified, and delegates are merged. Gateways (of the object and in matches) are `mesh` or
 * `namespace/name` and always set.
 */
export interface ResolvedVirtualService {
  readonly config: Config<VirtualService>;
  /** Namespaces to which the object is exported; empty for all. */
  readonly exportTo: ReadonlySet<string>;
  readonly origins: readonly ConfigKey[];
  /** Origins of each `http` route by index: in the delegate, then in the object. Absent without delegates. */
  readonly httpOrigins?: readonly (readonly Origin[])[];
}

/** The oldest rule of a host is the base; later ones add subsets. */
export interface MergedDestinationRule {
  readonly config: Config<DestinationRule>;
  readonly origins: readonly ConfigKey[];
}
