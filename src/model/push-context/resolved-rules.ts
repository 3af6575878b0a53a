/** Rules as they take effect: several objects' words made into one. Each knows the objects that it came from. */
import type { Config, ConfigKey, Origin } from '../config/config.ts';
import type { DestinationRule } from '../kinds/destinations/destination-rule.ts';
import type { VirtualService } from '../kinds/virtual-service/virtual-service.ts';

/**
 * A virtual service as generators read it: hosts and destination hosts fully qualified, gateway names (its own and
 * those in matches) `mesh` or `namespace/name` and never absent on the object, delegates merged in.
 */
export interface ResolvedVirtualService {
  readonly config: Config<VirtualService>;
  /** Who sees it; empty: everybody. */
  readonly exportTo: ReadonlySet<string>;
  /** The object, and the delegates that were merged into it. */
  readonly origins: readonly ConfigKey[];
  /**
   * Where each of its `http` routes was written, by index: in the delegate, then in the object. Absent for one without
   * delegates, whose routes stand where the object has them.
   */
  readonly httpOrigins?: readonly (readonly Origin[])[];
}

/** All rules for one host as one (§8.2: the oldest is the base; later ones add subsets). */
export interface MergedDestinationRule {
  /** The base rule's envelope with the merged spec; host fully qualified. */
  readonly config: Config<DestinationRule>;
  /** Every rule that went into it. */
  readonly origins: readonly ConfigKey[];
}
