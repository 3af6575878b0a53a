import type { Config } from '../../model/config/config.ts';
import type { EnvoyFilter, EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import type { Origin } from '../inputs/message-origin.ts';

/** A patch of an EnvoyFilter that applies to a proxy. */
export interface HeldPatch {
  /** As it is applied: without Wasm code for an Envoy that cannot run it. */
  readonly patch: EnvoyPatch;
  /** As the object has it. */
  readonly written: EnvoyPatch;
  readonly filter: Config<EnvoyFilter>;
  readonly origin: Origin;
  /** The patch's place in the set. */
  readonly index: number;
}
