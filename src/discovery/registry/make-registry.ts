/** Service registries: the actor that follows all of them, and computes services and endpoints. */
import type { RegistryOffers } from './registry.ts';
import { type ComputeServices, type RegistryState, serviceRegistryWithEffects } from './service-registry.effects.ts';

export interface RegistryParts {
  readonly state: RegistryState;
  readonly computeServices: ComputeServices;
  /** Registries beside those that flags name. */
  readonly offers: RegistryOffers;
}

export function makeRegistry({ state, computeServices, offers }: RegistryParts) {
  return { actors: () => ({ serviceRegistry: serviceRegistryWithEffects(state, computeServices, offers) }) };
}
