import type { Config, ConfigKey, Origin } from '../config/config.ts';
import type { DestinationRule } from '../kinds/destinations/destination-rule.ts';
import type { VirtualService } from '../kinds/virtual-service/virtual-service.ts';

/**
 * A virtual service for generators. Hosts are fully qualified; gateways (of the object and in matches) are `mesh` or `namespace/name` and always set;
 * delegates are merged.
 */
export interface ResolvedVirtualService {
  readonly config: Config<VirtualService>;
  /** Namespaces to which the object is exported; empty for all. */
  readonly exportTo: ReadonlySet<string>;
  /** The object and its merged delegates. */
  readonly origins: readonly ConfigKey[];
  /**
   * Origins of each `http` route by index: in the delegate, then in the object. Absent without delegates, when the indexes are those of the object.
   */
  readonly httpOrigins?: readonly (readonly Origin[])[];
}

/** The merged rules of one host (the oldest is the base; later ones add subsets). */
export interface MergedDestinationRule {
  /** The base rule's envelope with the merged spec; the host is fully qualified. */
  readonly config: Config<DestinationRule>;
  readonly origins: readonly ConfigKey[];
}
