import { byAge, type Config, type ConfigKey, configKeyOf, configKeyText } from '../../model/config/config.ts';
import {
  type ConfigHandler,
  type ConfigSchema,
  type ConfigStore,
  type ConfigStoreController,
  refusingWrites,
} from './config-store.ts';

/** Several stores as one: the first that holds a key wins. Writes go to the writer, if there is one (spec/discovery.md §4.1). */
export class AggregateConfigStore implements ConfigStoreController {
  readonly create: ConfigStore['create'];
  readonly update: ConfigStore['update'];
  readonly updateStatus: ConfigStore['updateStatus'];
  readonly delete: ConfigStore['delete'];
  readonly #stores: readonly ConfigStoreController[];

  constructor(stores: readonly ConfigStoreController[], writer?: ConfigStore) {
    this.#stores = stores;
    const writes = writer ?? refusingWrites('no writable store');
    this.create = (config) => writes.create(config);
    this.update = (config) => writes.update(config);
    this.updateStatus = (key, status, version) => writes.updateStatus(key, status, version);
    this.delete = (key, version) => writes.delete(key, version);
  }

  schemas(): readonly ConfigSchema[] {
    const all = this.#stores.flatMap((store) => store.schemas());
    return [...new Map(all.map((schema) => [`${schema.group}/${schema.kind}`, schema])).values()];
  }

  get(key: ConfigKey): Config | undefined {
    for (const store of this.#stores) {
      const config = store.get(key);
      if (config !== undefined) return config;
    }
    return undefined;
  }

  list(kind: string, namespace?: string): readonly Config[] {
    const first = new Map<string, Config>();
    for (const store of this.#stores) {
      for (const config of store.list(kind, namespace)) {
        const key = configKeyText(configKeyOf(config));
        if (!first.has(key)) first.set(key, config);
      }
    }
    return [...first.values()].sort(byAge);
  }

  /** Events are those of each store: of a key that two hold, those of both. */
  registerEventHandler(kind: string, handler: ConfigHandler): void {
    for (const store of this.#stores) store.registerEventHandler(kind, handler);
  }

  async run(stop: AbortSignal): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.run(stop)));
  }

  hasSynced(): boolean {
    return this.#stores.every((store) => store.hasSynced());
  }
}
