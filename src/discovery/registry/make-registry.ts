/** Service registries: the actor that follows all of them, and computes services and endpoints. */
import type { RegistryOffers } from './registry.ts';
import { type RegistryState, serviceRegistryWithEffects } from './service-registry.effects.ts';

export interface RegistryParts {
  readonly state: RegistryState;
  /** Registries beside those that flags name. */
  readonly offers: RegistryOffers;
}

export function makeRegistry({ state, offers }: RegistryParts) {
  return { actors: () => ({ serviceRegistry: serviceRegistryWithEffects(state, offers) }) };
}
