import { isDeepStrictEqual } from 'node:util';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { RegistryOffer, RegistryOffers } from '../registry/registry.ts';
import { ConsulDatacenter, type DatacenterView } from './consul-datacenter.ts';
import type { ConsulSettings } from './consul-settings.ts';

export interface ConsulRegistriesOptions {
  readonly settings: ConsulSettings;
  readonly registrySettings: () => RegistryOptions;
  readonly log: Logger;
}

export class ConsulRegistries {
  readonly #options: ConsulRegistriesOptions;
  readonly #datacenters = new Map<string, ConsulDatacenter>();
  #onOffers: ((offers: readonly RegistryOffer[]) => void) | undefined;
  /** `undefined` until the list of datacenters is known. */
  #offers: readonly RegistryOffer[] | undefined;
  #followedRegistries: readonly string[] = [];
  #settings: RegistryOptions | undefined;
  #revision = 0;

  constructor(options: ConsulRegistriesOptions) {
    this.#options = options;
  }

  readonly offers: RegistryOffers = (onOffers) => {
    this.#onOffers = onOffers;
    if (this.#offers !== undefined) onOffers(this.#offers);
    return () => {
      this.#onOffers = undefined;
    };
  };

  get conditions(): readonly string[] {
    return [...this.#datacenters.values()].flatMap((datacenter) => datacenter.conditionText ?? []);
  }

  get views(): readonly DatacenterView[] {
    return this.#followedRegistries.map((name) => this.datacenter(name).view);
  }

  onSettingsChanged(): void {
    if (this.#settings !== undefined) this.#offerRegistries();
  }

  close(): void {
    for (const datacenter of this.#datacenters.values()) datacenter.close();
  }

  get configuredNames(): readonly string[] {
    return this.#options.settings.datacenters;
  }

  datacenter(name: string): ConsulDatacenter {
    let datacenter = this.#datacenters.get(name);
    if (datacenter === undefined) {
      const { settings, log } = this.#options;
      datacenter = new ConsulDatacenter({ name, settings, log });
      this.#datacenters.set(name, datacenter);
    }
    return datacenter;
  }

  publish(followedRegistries: readonly string[]): void {
    for (const [name, datacenter] of this.#datacenters) {
      if (followedRegistries.includes(name)) continue;
      datacenter.close();
      this.#datacenters.delete(name);
    }
    this.#followedRegistries = followedRegistries;
    this.#offerRegistries();
  }

  #offerRegistries(): void {
    const settings = this.#options.registrySettings();
    if (!isDeepStrictEqual(settings, this.#settings)) {
      this.#settings = settings;
      this.#revision++;
    }
    this.#offers = this.#followedRegistries.map((name): RegistryOffer => {
      const datacenter = this.datacenter(name);
      const { provider, cluster } = datacenter.shard;
      return {
        ...{ provider, clusterId: cluster, revision: `${this.#revision}` },
        create: (updates) => datacenter.createRegistry(settings, updates),
      };
    });
    // Deferred until the chart's current transition has ended.
    queueMicrotask(() => this.#offers && this.#onOffers?.(this.#offers));
  }
}
