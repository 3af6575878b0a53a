import type { Config } from '../../model/config/config.ts';
import type { EnvoyFilter, EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import type { Origin } from '../inputs/message-origin.ts';

export interface ActivePatch {
  /** The patch, without Wasm code if the proxy's Envoy cannot run it. */
  readonly patch: EnvoyPatch;
  readonly configuredPatch: EnvoyPatch;
  readonly filter: Config<EnvoyFilter>;
  readonly origin: Origin;
  readonly index: number;
}
