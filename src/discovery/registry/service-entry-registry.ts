import type { RegistryDelta } from '../../model/services/registry-delta.ts';
import { serviceKey } from '../../model/services/service.ts';
import type { ServiceEntryOptions } from '../../model/services/service-entry-services.ts';
import { ServiceEntryServices } from '../../model/services/services-of-entries.ts';
import { ObjectRegistry } from './object-registry.ts';
import type { XdsUpdater } from './registry.ts';

export class ServiceEntryRegistry extends ObjectRegistry {
  constructor(options: ServiceEntryOptions, updater: XdsUpdater) {
    super({ provider: 'External', cluster: options.clusterId }, new ServiceEntryServices(options), updater);
  }

  /** A selector can make a proxy part of a service even without an endpoint. */
  protected override onApplied({ selectors = [] }: RegistryDelta): void {
    if (selectors.length > 0) this.updater.configUpdate({ configs: selectors.map(serviceKey), reason: 'service' });
  }
}
