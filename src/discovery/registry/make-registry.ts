import type { RegistryOffers } from './registry.ts';
import { type RegistryState, serviceRegistryWithEffects } from './service-registry.effects.ts';

export interface RegistryParts {
  readonly state: RegistryState;
  readonly offers: RegistryOffers;
}

export function makeRegistry({ state, offers }: RegistryParts) {
  return { actors: () => ({ serviceRegistry: serviceRegistryWithEffects(state, offers) }) };
}
