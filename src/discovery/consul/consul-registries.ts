/** Datacenters of Consul, each offered as a registry. */
import { isDeepStrictEqual } from 'node:util';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { RegistryOffer, RegistryOffers } from '../registry/registry.ts';
import { ConsulDatacenter, type DatacenterView } from './consul-datacenter.ts';
import type { ConsulSettings } from './consul-settings.ts';

export interface ConsulRegistriesOptions {
  readonly settings: ConsulSettings;
  /** Settings of registries, of this moment. */
  readonly registrySettings: () => RegistryOptions;
  readonly log: Logger;
}

export class ConsulRegistries {
  readonly #options: ConsulRegistriesOptions;
  readonly #datacenters = new Map<string, ConsulDatacenter>();
  #offered: ((offers: readonly RegistryOffer[]) => void) | undefined;
  /** Undefined until the chart took up the list of datacenters. */
  #offers: readonly RegistryOffer[] | undefined;
  #followed: readonly string[] = [];
  #settings: RegistryOptions | undefined;
  #revision = 0;

  constructor(options: ConsulRegistriesOptions) {
    this.#options = options;
  }

  readonly offers: RegistryOffers = (offered) => {
    this.#offered = offered;
    if (this.#offers !== undefined) offered(this.#offers);
    return () => {
      this.#offered = undefined;
    };
  };

  /** What is wrong, in lines for people; none if nothing is. */
  get conditions(): readonly string[] {
    return [...this.#datacenters.values()].flatMap((datacenter) => datacenter.conditionText ?? []);
  }

  /** All datacenters, for debug pages and metrics. */
  get views(): readonly DatacenterView[] {
    return this.#followed.map((name) => this.datacenter(name).view);
  }

  /** Registries depend on the mesh configuration. */
  settingsChanged(): void {
    if (this.#settings !== undefined) this.#offer();
  }

  close(): void {
    for (const datacenter of this.#datacenters.values()) datacenter.close();
  }

  /** Datacenters that are read. */
  get configured(): readonly string[] {
    return this.#options.settings.datacenters;
  }

  /** The datacenter of a name; it is created when it is requested for the first time. */
  datacenter(name: string): ConsulDatacenter {
    let datacenter = this.#datacenters.get(name);
    if (datacenter === undefined) {
      const { settings, log } = this.#options;
      datacenter = new ConsulDatacenter({ name, settings, log });
      this.#datacenters.set(name, datacenter);
    }
    return datacenter;
  }

  /** The chart follows these datacenters, and no others: each is offered as a registry. */
  publish(followed: readonly string[]): void {
    for (const [name, datacenter] of this.#datacenters) {
      if (followed.includes(name)) continue;
      datacenter.close();
      this.#datacenters.delete(name);
    }
    this.#followed = followed;
    this.#offer();
  }

  #offer(): void {
    const settings = this.#options.registrySettings();
    if (!isDeepStrictEqual(settings, this.#settings)) {
      this.#settings = settings;
      this.#revision++;
    }
    this.#offers = this.#followed.map((name): RegistryOffer => {
      const datacenter = this.datacenter(name);
      const { provider, cluster } = datacenter.shard;
      return {
        ...{ provider, clusterId: cluster, revision: `${this.#revision}` },
        make: (updates) => datacenter.make(settings, updates),
      };
    });
    // A chart is in the midst of its step.
    queueMicrotask(() => this.#offers && this.#offered?.(this.#offers));
  }
}
