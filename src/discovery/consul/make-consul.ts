import type { RegistryOptions } from '../../model/services/service-registry.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { joinOffers, type RegistryOffers } from '../registry/registry.ts';
import { consulWithEffects } from './consul.effects.ts';
import { ConsulRegistries } from './consul-registries.ts';
import type { ConsulSettings } from './consul-settings.ts';

export function makeConsul(settings: ConsulSettings | undefined, registrySettings: () => RegistryOptions, log: Logger) {
  const registries = settings && new ConsulRegistries({ settings, registrySettings, log });
  return {
    registries,
    actors: () => registries && { consul: consulWithEffects(registries, log) },
    joinOffersOfConsul: (otherOffers: RegistryOffers) =>
      registries ? joinOffers(otherOffers, registries.offers) : otherOffers,
  };
}
